"""The device's one desk: messages of many hosts come in, one command at a time is worked on, answers go out."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from firmware_bridge.virtual.faults import Faults, Phase
from firmware_bridge.virtual.panel import Panel
from firmware_bridge.virtual.trezor import screens
from firmware_bridge.virtual.trezor.access import Access
from firmware_bridge.virtual.trezor.commands import get_address, get_public_key, sign_message
from firmware_bridge.virtual.trezor.messages import (
    ButtonCode,
    EndSession,
    Failure,
    FailureCode,
    Features,
    GetAddress,
    GetPublicKey,
    Initialize,
    LockDevice,
    Ping,
    SignMessage,
    SignTx,
    Success,
)
from firmware_bridge.virtual.trezor.protobuf import Message
from firmware_bridge.virtual.trezor.routing import (
    MACHINE_PATIENCE,
    PATIENCE,
    ROUTES,
    Action,
    Standing,
    sort_of,
)
from firmware_bridge.virtual.trezor.signing import sign_tx
from firmware_bridge.virtual.trezor.wallet import Wallet
from firmware_bridge.virtual.trezor.work import Peer, Refused, Silenced, Work
from multisig import MultisigError, Network

MAX_HOSTS = 64
"""Whose sessions are remembered; every scan comes from a port of its own."""

_log = logging.getLogger(__name__)

_WITH_SEED: dict[type[Message], Callable[[Work, Wallet, Any], Awaitable[Message]]] = {
    GetPublicKey: get_public_key,
    GetAddress: get_address,
    SignMessage: sign_message,
    SignTx: sign_tx,
}
"""The commands that need the seed, and so an unlocked device."""


@dataclass(frozen=True)
class Surroundings:
    """What the desk is given: the way out to the hosts, the faults, the clock (seconds)."""

    send: Callable[[Peer, Message], None]
    strike: Callable[[Phase], None]
    faults: Callable[[], Faults]
    clock: Callable[[], float]


class Desk:
    def __init__(
        self, *, features: Features, access: Access, network: Network, panel: Panel, around: Surroundings
    ) -> None:
        self._features = features
        self._access = access
        self._network = network
        self._panel = panel
        self._around = around
        self._sessions: OrderedDict[Peer, bytes] = OrderedDict()
        self._work: Work | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def features(self) -> Features:
        """As they are now."""
        access = self._access
        hidden = access.on_device and not access.unlocked
        return replace(
            self._features,
            pin_protection=access.pin_protection,
            # Newer models keep it to themselves while they are locked.
            passphrase_protection=None if hidden else access.passphrase_protection,
            passphrase_always_on_device=None if hidden else access.always_on_device,
            unlocked=access.unlocked,
        )

    async def heed(self, peer: Peer, message: Message) -> None:
        """Do with this host's message what the table says."""
        work = self._work
        action = ROUTES[self._standing(peer), sort_of(message, None if work is None else work.awaits)]
        match action:
            case Action.ANSWER:
                self._tell_features(peer)
            case Action.START:
                self._start(peer, message)
            case Action.RESTART:
                await self.clear()
                self._start(peer, message)
            case Action.DELIVER | Action.ADOPT:
                self._deliver(peer, message)
            case Action.ABORT:
                await self._abort(peer)
            case Action.SAY_BUSY:
                self._fail(peer, FailureCode.PROCESS_ERROR, "Device is busy")
            case Action.SAY_UNEXPECTED:
                self._fail(peer, FailureCode.UNEXPECTED_MESSAGE, "Unexpected message")

    async def clear(self) -> None:
        """Drop the work under way without a word; its prompt leaves the screen."""
        task, self._task, self._work = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _standing(self, peer: Peer) -> Standing:
        work = self._work
        if work is None:
            return Standing.IDLE
        if work.peer == peer:
            return Standing.OWNER
        if work.awaits is None:
            return Standing.STRANGER
        silence = self._around.clock() - work.heard_at
        return Standing.HEIR if silence > PATIENCE.get(work.awaits, MACHINE_PATIENCE) else Standing.STRANGER

    def _start(self, peer: Peer, message: Message) -> None:
        around = self._around
        work = Work(peer, self._panel, around.send, around.strike, around.faults())
        work.heard_at = around.clock()
        self._work = work
        self._task = asyncio.create_task(self._run(work, message))

    def _deliver(self, peer: Peer, message: Message) -> None:
        work = self._work
        assert work is not None, "only work under way is delivered to"
        work.peer = peer
        work.heard_at = self._around.clock()
        work.deliver(message)

    async def _abort(self, peer: Peer) -> None:
        work = self._work
        await self.clear()
        for host in {peer} if work is None else {peer, work.peer}:
            self._fail(host, FailureCode.ACTION_CANCELLED, "Cancelled")

    async def _run(self, work: Work, message: Message) -> None:
        answer = await self._answer(work, message)
        # Free before the host hears of it: its next command comes at once.
        self._work = self._task = None
        if answer is not None:
            self._around.send(work.peer, answer)

    async def _answer(self, work: Work, message: Message) -> Message | None:
        try:
            return await self._perform(work, message)
        except Silenced:
            return None
        except Refused as refusal:
            return Failure(code=refusal.code, message=str(refusal))
        except MultisigError as error:
            return Failure(code=FailureCode.DATA_ERROR, message=str(error))
        except Exception:  # noqa: BLE001 - outermost: a bug here must not leave the host waiting for ever
            _log.exception("the virtual Trezor failed at %s", type(message).__name__)
            return Failure(code=FailureCode.PROCESS_ERROR, message="Firmware error")

    async def _perform(self, work: Work, message: Message) -> Message:
        match message:
            case Initialize():
                return self._initialize(work, message)
            case Ping():
                return await self._ping(work, message)
            case LockDevice():
                self._access.lock()
                return Success(message="Device locked")
            case EndSession():
                self._access.end_session(self._sessions.pop(work.peer, None))
                return Success(message="Session ended")
        handler = _WITH_SEED.get(type(message))
        if handler is None:
            raise Refused(FailureCode.UNEXPECTED_MESSAGE, "Unknown message")
        if not self._features.initialized:
            raise Refused(FailureCode.NOT_INITIALIZED, "Device not initialized")
        seed = await self._access.open(work, self._session(work.peer, self._sessions.get(work.peer)))
        return await handler(work, Wallet(seed, self._network), message)

    def _initialize(self, work: Work, message: Initialize) -> Features:
        work.reach(Phase.PROBE)
        return replace(self.features, session_id=self._session(work.peer, message.session_id))

    async def _ping(self, work: Work, message: Ping) -> Success:
        text = message.message or ""
        if self._access.on_device:
            # Newer models answer nothing but what tells who they are before they are unlocked.
            await self._access.unlock(work)
        if message.button_protection:
            await work.confirm(ButtonCode.PROTECT_CALL, screens.ping(text))
        return Success(message=text)

    def _session(self, peer: Peer, wanted: bytes | None) -> bytes:
        session_id = self._access.session(wanted)
        self._sessions[peer] = session_id
        self._sessions.move_to_end(peer)
        if len(self._sessions) > MAX_HOSTS:
            self._sessions.popitem(last=False)
        return session_id

    def _tell_features(self, peer: Peer) -> None:
        try:
            self._around.strike(Phase.PROBE)
        except Silenced:
            return
        self._around.send(peer, self.features)

    def _fail(self, peer: Peer, code: FailureCode, message: str) -> None:
        self._around.send(peer, Failure(code=code, message=message))
