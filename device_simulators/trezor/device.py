"""The virtual Trezor: its ports, its frames, its faults; the desk behind them does the work."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from device_simulators.errors import NoSuchPrompt, NothingToLock
from device_simulators.faults import Faults, Phase
from device_simulators.panel import Panel
from device_simulators.seed import Seed
from device_simulators.trezor.access import Access
from device_simulators.trezor.desk import Desk, Surroundings
from device_simulators.trezor.framing import (
    CHUNK,
    PING,
    PONG,
    MalformedFrame,
    Reassembler,
    to_chunks,
)
from device_simulators.trezor.link import Link, open_link
from device_simulators.trezor.messages import (
    BY_NUMBER,
    NUMBERS,
    DebugLinkDecision,
    DebugLinkGetState,
    DebugLinkState,
    Failure,
    FailureCode,
)
from device_simulators.trezor.models import MODELS, features_of, model_of
from device_simulators.trezor.protobuf import MalformedMessage, Message, decode, encode
from device_simulators.trezor.work import Peer, Silenced
from firmware_bridge.model import Endpoint, Family
from multisig import Fingerprint, Network

DEFAULT_HOST = "127.0.0.1"
_GARBAGE = b"\xff" * CHUNK
_MAX_QUEUED = 4096
"""Chunks: more than a hundred of the largest messages. What comes on top is lost, as UDP may."""


class VirtualTrezor:
    """A Trezor on two neighbouring UDP ports of this machine.

    `allow_keypress` lets hosts press the buttons and read the PIN's places through the debug link, as HWI does with every
    emulator. Without a `pin` it is never locked; with one it starts locked. `model` is one of `models.MODELS`, or a name that
    nobody knows. `always_on_device`: a newer model's setting to take a passphrase on its own screen only. `sleep` is what a wrong
    PIN makes everybody wait by, in seconds. It is set to no network, unlike the devices of other makers: what the host names counts.

    All hosts share one cable: what it says goes to whoever wrote last, be it only a ping (legacy/emulator/udp.c).
    """

    def __init__(
        self,
        seed: Seed,
        panel: Panel,
        _network: Network,
        *,
        label: str = "Virtual Trezor",
        pin: str | None = None,
        passphrase_protection: bool = False,
        always_on_device: bool = False,
        model: str = MODELS[0].name,
        initialized: bool = True,
        bootloader: bool = False,
        faults: Faults | None = None,
        allow_keypress: bool = False,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.panel = panel
        self.faults = faults or Faults()
        self.fingerprint: Fingerprint = seed.fingerprint
        self._allow_keypress = allow_keypress
        kind = model_of(model)
        self._access = Access(
            seed,
            pin,
            passphrase_protection=passphrase_protection,
            on_device=kind.on_device,
            always_on_device=always_on_device,
            random_bytes=random_bytes,
            sleep=sleep,
        )
        self._desk = Desk(
            model=kind,
            features=features_of(
                kind, seed.fingerprint, label, initialized=initialized, bootloader=bootloader
            ),
            access=self._access,
            panel=panel,
            around=Surroundings(self._send, self._strike, lambda: self.faults),
        )
        self._link: Link | None = None
        self._server: asyncio.Task[None] | None = None
        self._chunks: asyncio.Queue[tuple[Peer, bytes]] = asyncio.Queue(_MAX_QUEUED)
        self._reassembler = Reassembler()
        self._heard: Peer | None = None
        self._silent = False
        self._garble = False

    async def start(self, host: str = DEFAULT_HOST, port: int = 0) -> Endpoint:
        """Listen on `port` and the next one (0: any two); also plugs in again a device that has vanished or stalled.

        :raises InvalidListenAddress: not an address of this machine only.
        :raises AddressUnavailable: it is taken.
        """
        await self.stop()
        self._silent = self._garble = False
        self._link = await open_link(host, port, self._on_wire, self._on_debug)
        self._server = asyncio.create_task(self._serve())
        address, bound = self._link.wire.address
        return Endpoint(Family.TREZOR, f"udp:{address}:{bound}")

    async def stop(self) -> None:
        """Unplug: the ports are closed, open prompts withdrawn, sessions forgotten, a PIN is needed again."""
        server, self._server = self._server, None
        if server is not None:
            server.cancel()
            await asyncio.wait({server})
        await self._desk.clear()
        link, self._link = self._link, None
        if link is not None:
            link.close()
            await link.wait_closed()
        self._reassembler = Reassembler()
        self._chunks = asyncio.Queue(_MAX_QUEUED)
        self._access.power_off()

    def lock(self) -> None:
        """Ask for the PIN from now on.

        :raises NothingToLock: it has none.
        """
        if not self._access.pin_protection:
            raise NothingToLock("a Trezor without a PIN is never locked")
        self._desk.lock()

    def unlock(self) -> None:
        """As if the right PIN had been given."""
        self._access.unlocked = True

    def enter_passphrase(self, passphrase: str) -> None:
        """What the person enters on the device when it asks there and is told yes."""
        self._access.entered = passphrase

    def _on_wire(self, peer: Peer, data: bytes) -> None:
        if not self._silent and self._link is not None and not self._chunks.full():
            self._chunks.put_nowait((peer, data))

    async def _serve(self) -> None:
        while True:
            peer, data = await self._chunks.get()
            if not self._silent:
                await self._take(peer, data)

    async def _take(self, peer: Peer, data: bytes) -> None:
        self._heard = peer
        if data == PING:
            self._write(PONG)
            return
        try:
            complete = self._reassembler.feed(data)
        except MalformedFrame:
            return  # the firmware drops such chunks without a word, too
        if complete is None:
            return
        try:
            message = _parse(*complete)
        except MalformedMessage as error:
            self._send(Failure(code=FailureCode.DATA_ERROR, message=f"Malformed message: {error}"))
            return
        await self._desk.heed(message)

    def _send(self, message: Message) -> None:
        garble, self._garble = self._garble, False
        for chunk in [_GARBAGE] if garble else to_chunks(NUMBERS[type(message)], encode(message)):
            self._write(chunk)

    def _write(self, chunk: bytes) -> None:
        if not self._silent and self._link is not None and self._heard is not None:
            self._link.wire.send(self._heard, chunk)

    def _strike(self, phase: Phase) -> None:
        """Misbehave, if that is due at this phase."""
        if self.faults.vanish_at is phase and self._link is not None:
            self._link.close()
        if phase in {self.faults.vanish_at, self.faults.stall_at}:
            self._silent = True
            raise Silenced
        if self.faults.garbage_at is phase:
            self._garble = True

    def _on_debug(self, peer: Peer, data: bytes) -> None:
        if self._silent or self._link is None:
            return
        if data == PING:
            self._link.debug.send(peer, PONG)
        elif self._allow_keypress:
            self._obey(peer, data)

    def _obey(self, peer: Peer, data: bytes) -> None:
        """The debug link's two requests; each fits one chunk. What is no request is dropped."""
        try:
            complete = Reassembler().feed(data)
            message = None if complete is None else _parse(*complete)
        except (MalformedFrame, MalformedMessage):
            return
        match message:
            case DebugLinkDecision(yes_no=bool(yes)):
                self._press(yes=yes)
            case DebugLinkGetState():
                self._tell_state(peer)

    def _press(self, *, yes: bool) -> None:
        try:
            if yes:
                self.panel.press_yes()
            else:
                self.panel.press_no()
        except NoSuchPrompt:
            return  # a script was faster

    def _tell_state(self, peer: Peer) -> None:
        assert self._link is not None
        shown = self.panel.pending
        state = DebugLinkState(
            matrix=self._access.matrix,
            passphrase_protection=self._access.passphrase_protection,
            layout_lines=() if shown is None else shown[1].lines,
        )
        for chunk in to_chunks(NUMBERS[DebugLinkState], encode(state)):
            self._link.debug.send(peer, chunk)


def _parse(number: int, payload: bytes) -> Message | None:
    """None for a number that this device does not know.

    :raises MalformedMessage: the payload is no such message.
    """
    kind = BY_NUMBER.get(number)
    return None if kind is None else decode(kind, payload)
