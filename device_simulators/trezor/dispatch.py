"""Takes the messages of the one cable, carries out one command at a time, and answers the program that wrote
last.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from device_simulators.faults import Misbehaviour, Phase, Silenced
from device_simulators.panel import Panel
from device_simulators.trezor import screens
from device_simulators.trezor.access import TrezorAccess
from device_simulators.trezor.commands import get_address, get_public_key, sign_message, sign_tx
from device_simulators.trezor.messages import (
    ButtonCode,
    Failure,
    FailureCode,
    Features,
    GetAddress,
    GetPublicKey,
    Initialize,
    Ping,
    SignMessage,
    SignTx,
    Success,
)
from device_simulators.trezor.wallet import TrezorWallet, network_of
from device_simulators.trezor.wire import Message
from device_simulators.trezor.work import (
    ROUTES,
    Mode,
    Sort,
    TrezorRefused,
    TrezorWork,
    WorkStep,
    action_cancelled,
    sort_of,
)
from multisig import MultisigError

_log = logging.getLogger(__name__)

_WITH_SEED: dict[type[Message], Callable[[TrezorWork, TrezorWallet, Any], Awaitable[Message]]] = {
    GetPublicKey: get_public_key,
    GetAddress: get_address,
    SignMessage: sign_message,
    SignTx: sign_tx,
}
"""The commands that need the seed, and so an unlocked device."""


@dataclass(frozen=True)
class _Running:
    work: TrezorWork
    task: asyncio.Task[None]


class TrezorDispatcher:
    def __init__(
        self,
        *,
        features: Features,
        access: TrezorAccess,
        panel: Panel,
        send: Callable[[Message], None],
        misbehaviour: Misbehaviour,
    ) -> None:
        """`send` answers the host that wrote last."""
        self._features = features
        self._access = access
        self._panel = panel
        self._send = send
        self._misbehaviour = misbehaviour
        self._active: bytes | None = None
        """The session that the last Initialize began or resumed."""
        self._running: list[_Running] = []
        """A transaction that is being fetched, and on top of it a command that came in between."""

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

    async def handle(self, message: Message | None) -> None:
        """Do with this message what the table says, once the device reads messages; None is one that it does
        not know.
        """
        mode, sort = await self._standing(message)
        match ROUTES[mode, sort]:
            case WorkStep.ANSWER:
                self._tell_features()
            case WorkStep.START:
                self._start(message)
            case WorkStep.RESTART:
                await self.clear()
                self._start(message)
            case WorkStep.DELIVER:
                assert message is not None, "what is due is known"
                self._running[-1].work.deliver(message)
            case WorkStep.ABORT:
                await self.clear()
                self._refuse(action_cancelled())
            case WorkStep.IGNORE:
                pass
            case WorkStep.SAY_UNEXPECTED:
                self._refuse(TrezorRefused(FailureCode.UNEXPECTED_MESSAGE, "Unexpected message"))

    async def clear(self) -> None:
        """Drop the work under way without a word; its prompt leaves the screen."""
        running, self._running = self._running, []
        for each in running:
            each.task.cancel()
        if running:
            await asyncio.wait({each.task for each in running})

    def lock(self) -> None:
        """Lock the device. A newer model drops what it does, and says that it was cancelled
        (workflow.close_others in core/src/trezor/workflow.py); a Trezor One goes on.
        """
        self._access.lock()
        if not self._access.on_device or not self._running:
            return
        running, self._running = self._running, []
        for each in running:
            each.task.cancel()
        self._refuse(action_cancelled("Cancelled"))

    async def _standing(self, message: Message | None) -> tuple[Mode, Sort]:
        while self._running:
            work = self._running[-1].work
            if work.mode is None:
                await work.listens()
                # A command that has ended is forgotten in the loop's next turn.
                await asyncio.sleep(0)
                continue
            sort = sort_of(message, work.awaits)
            if not self._access.on_device or sort is Sort.DUE:
                return work.mode, sort
            await self.clear()
        return Mode.IDLE, sort_of(message, None)

    def _start(self, message: Message | None) -> None:
        work = TrezorWork(self._panel, self._send, self._misbehaviour)
        self._running.append(_Running(work, asyncio.create_task(self._run(work, message))))

    async def _run(self, work: TrezorWork, message: Message | None) -> None:
        try:
            answer = await self._answer(work, message)
        finally:
            work.end()
        # Free before the host hears of it: its next command comes at once.
        self._running = [each for each in self._running if each.work is not work]
        if answer is not None:
            self._send(answer)

    async def _answer(self, work: TrezorWork, message: Message | None) -> Message | None:
        try:
            return await self._perform(work, message)
        except Silenced:
            return None
        except TrezorRefused as refusal:
            return Failure(code=refusal.code, message=str(refusal))
        except MultisigError as error:
            return Failure(code=FailureCode.DATA_ERROR, message=str(error))
        except Exception:  # noqa: BLE001 - outermost: a bug here must not leave the host waiting for ever
            _log.exception("the virtual Trezor failed at %s", type(message).__name__)
            return Failure(code=FailureCode.PROCESS_ERROR, message="Firmware error")

    async def _perform(self, work: TrezorWork, message: Message | None) -> Message:
        match message:
            case Initialize():
                return self._initialize(work, message)
            case Ping():
                return await self._ping(work, message)
        if not isinstance(message, GetPublicKey | GetAddress | SignMessage | SignTx):
            raise TrezorRefused(FailureCode.UNEXPECTED_MESSAGE, "Unknown message")
        if not self._features.initialized:
            raise TrezorRefused(FailureCode.NOT_INITIALIZED, "Device not initialized")
        seed = await self._access.open(work, self._session(self._active))
        wallet = TrezorWallet(seed, network_of(message.coin_name))
        return await _WITH_SEED[type(message)](work, wallet, message)

    def _initialize(self, work: TrezorWork, message: Initialize) -> Features:
        work.misbehaviour.reach(Phase.PROBE)
        return replace(self.features, session_id=self._session(message.session_id))

    async def _ping(self, work: TrezorWork, message: Ping) -> Success:
        if self._access.on_device:
            # Newer models answer nothing but what tells who they are before they are unlocked.
            await self._access.unlock(work)
        if message.button_protection:
            await work.confirm(ButtonCode.PROTECT_CALL, screens.ping())
        return Success(message=message.message or "")

    def _session(self, wanted: bytes | None) -> bytes:
        self._active = self._access.session(wanted)
        return self._active

    def _tell_features(self) -> None:
        try:
            self._misbehaviour.reach(Phase.PROBE)
        except Silenced:
            return
        self._send(self.features)

    def _refuse(self, refusal: TrezorRefused) -> None:
        self._send(Failure(code=refusal.code, message=str(refusal)))
