"""A virtual Trezor at two UDP ports, one for hosts and the next one for the debug link: its frames and its
faults; `dispatch` does the work.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from device_simulators.errors import (
    AddressUnavailable,
    InvalidListenAddress,
    NoSuchPrompt,
    NothingToLock,
    require_loopback,
)
from device_simulators.faults import Faults, Misbehaviour
from device_simulators.panel import Panel
from device_simulators.seed import Seed
from device_simulators.trezor.access import TrezorAccess
from device_simulators.trezor.dispatch import TrezorDispatcher
from device_simulators.trezor.messages import (
    BY_NUMBER,
    NUMBERS,
    DebugLinkDecision,
    DebugLinkGetState,
    DebugLinkState,
    Failure,
    FailureCode,
)
from device_simulators.trezor.models import ONE, features_of
from device_simulators.trezor.wire import (
    CHUNK,
    PING,
    PONG,
    MalformedFrame,
    MalformedMessage,
    Message,
    Reassembler,
    decode,
    encode,
    to_chunks,
)
from device_simulators.trezor.work import Peer
from firmware_bridge.model import Endpoint, Family
from multisig import Fingerprint, Network

_TRIES = 32
"""For two neighbouring free ports, where any will do."""
_LAST_PORT = 65_534

Receiver = Callable[[Peer, bytes], None]


class _Socket(asyncio.DatagramProtocol):
    """Passes datagrams on. ICMP errors of hosts that have gone are ignored."""

    def __init__(self, receive: Receiver, closed: asyncio.Event) -> None:
        self._receive = receive
        self._closed = closed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio calls it so
        self._closed.set()

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        self._receive((str(addr[0]), addr[1]), data)


class Port:
    """One open socket."""

    def __init__(self, transport: asyncio.DatagramTransport, closed: asyncio.Event) -> None:
        self._transport = transport
        self._closed = closed
        self.address: Peer = transport.get_extra_info("sockname")[:2]

    def send(self, peer: Peer, chunk: bytes) -> None:
        self._transport.sendto(chunk, peer)

    def close(self) -> None:
        self._transport.close()

    async def wait_closed(self) -> None:
        await self._closed.wait()


@dataclass(frozen=True)
class TrezorPorts:
    """Both ports, open."""

    wire: Port
    debug: Port

    def close(self) -> None:
        self.wire.close()
        self.debug.close()

    async def wait_closed(self) -> None:
        """Wait until the operating system has both ports back."""
        await self.wire.wait_closed()
        await self.debug.wait_closed()


async def open_link(host: str, port: int, on_wire: Receiver, on_debug: Receiver) -> TrezorPorts:
    """Listen on `port` and the next one; 0 takes two that are free.

    :raises InvalidListenAddress: not an address of this machine only: any program that reaches the debug link
    presses the buttons.
    :raises AddressUnavailable: one of the two is taken.
    """
    require_loopback(host)
    if not 0 <= port <= _LAST_PORT:
        raise InvalidListenAddress(f"port {port} leaves no room for the debug link on the next one")
    for _ in range(1 if port else _TRIES):
        link = await _try_open(host, port, on_wire, on_debug)
        if link is not None:
            return link
    raise AddressUnavailable(f"{host}:{port} or the port after it is taken")


async def _try_open(host: str, port: int, on_wire: Receiver, on_debug: Receiver) -> TrezorPorts | None:
    try:
        wire = await _listen(host, port, on_wire)
    except OSError:
        return None
    try:
        debug = await _listen(host, wire.address[1] + 1, on_debug)
    except (OSError, OverflowError):
        wire.close()
        await wire.wait_closed()
        return None
    return TrezorPorts(wire, debug)


async def _listen(host: str, port: int, receive: Receiver) -> Port:
    closed = asyncio.Event()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Socket(receive, closed), local_addr=(host, port)
    )
    return Port(transport, closed)


DEFAULT_HOST = "127.0.0.1"
_GARBAGE = b"\xff" * CHUNK
_MAX_QUEUED = 4096
"""Chunks: more than a hundred of the largest messages. What comes on top is lost, as UDP may."""


class VirtualTrezor:
    """A Trezor on two neighbouring UDP ports of this machine.

    `allow_keypress` lets hosts press the buttons and read the PIN's places through the debug link, as HWI
    does with every emulator. Without a `pin` it is never locked; with one it starts locked. `model`: see
    `models.ONE`. `always_on_device`: a newer model's setting to take a passphrase on its own screen only.
    `sleep` is what a wrong PIN makes every host wait, in seconds. It is set to no network, unlike the
    devices of other makers: what the host names counts.

    All hosts share one cable: what it says goes to the one that wrote last, even if that was a ping
    (legacy/emulator/udp.c).
    """

    def __init__(
        self,
        seed: Seed,
        panel: Panel,
        _network: Network,
        *,
        label: str = "",
        pin: str | None = None,
        passphrase_protection: bool = False,
        always_on_device: bool = False,
        model: str = ONE,
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
        self._access = TrezorAccess(
            seed,
            pin,
            passphrase_protection=passphrase_protection,
            on_device=model != ONE,
            always_on_device=always_on_device,
            random_bytes=random_bytes,
            sleep=sleep,
        )
        self._misbehaviour = Misbehaviour(lambda: self.faults, self._close_link)
        self._dispatcher = TrezorDispatcher(
            features=features_of(
                model, seed.fingerprint, label, initialized=initialized, bootloader=bootloader
            ),
            access=self._access,
            panel=panel,
            send=self._send,
            misbehaviour=self._misbehaviour,
        )
        self._link: TrezorPorts | None = None
        self._server: asyncio.Task[None] | None = None
        self._chunks: asyncio.Queue[tuple[Peer, bytes]] = asyncio.Queue(_MAX_QUEUED)
        self._reassembler = Reassembler()
        self._heard: Peer | None = None

    async def start(self, host: str = DEFAULT_HOST, port: int = 0) -> Endpoint:
        """Listen on `port` and the next one (0: any two); also plugs in again a device that has vanished or
        stalled.

        :raises InvalidListenAddress: not an address of this machine only.
        :raises AddressUnavailable: it is taken.
        """
        await self.stop()
        self._misbehaviour.start_over()
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
        await self._dispatcher.clear()
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
        self._dispatcher.lock()

    def unlock(self) -> None:
        """As if the right PIN had been given."""
        self._access.unlocked = True

    def enter_passphrase(self, passphrase: str) -> None:
        """What the person enters on the device when it asks there and is told yes."""
        self._access.entered = passphrase

    def _on_wire(self, peer: Peer, data: bytes) -> None:
        if not self._misbehaviour.silent and self._link is not None and not self._chunks.full():
            self._chunks.put_nowait((peer, data))

    async def _serve(self) -> None:
        while True:
            peer, data = await self._chunks.get()
            if not self._misbehaviour.silent:
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
        await self._dispatcher.handle(message)

    def _send(self, message: Message) -> None:
        garble = self._misbehaviour.take_garbage()
        for chunk in [_GARBAGE] if garble else to_chunks(NUMBERS[type(message)], encode(message)):
            self._write(chunk)

    def _write(self, chunk: bytes) -> None:
        if not self._misbehaviour.silent and self._link is not None and self._heard is not None:
            self._link.wire.send(self._heard, chunk)

    def _close_link(self) -> None:
        if self._link is not None:
            self._link.close()

    def _on_debug(self, peer: Peer, data: bytes) -> None:
        if self._misbehaviour.silent or self._link is None:
            return
        if data == PING:
            self._link.debug.send(peer, PONG)
        elif self._allow_keypress:
            self._obey(peer, data)

    def _obey(self, peer: Peer, data: bytes) -> None:
        """The debug link's two requests; each fits one chunk. Anything else is dropped."""
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

    :raises MalformedMessage: the payload is not such a message.
    """
    kind = BY_NUMBER.get(number)
    return None if kind is None else decode(kind, payload)
