"""Carries out one command at a time. A command may be interrupted to ask the host or the person."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from device_simulators.faults import Misbehaviour, Phase, Silenced
from device_simulators.ledger.apdu import Apdu, ApduReply, Bitcoin, Class, MalformedApdu, StatusWord, System
from device_simulators.ledger.commands import (
    get_extended_pubkey,
    get_wallet_address,
    register_wallet,
    sign_message,
    sign_psbt,
)
from device_simulators.ledger.wallet import LedgerWallet
from device_simulators.ledger.work import LedgerRefused, LedgerWork, Send, Timer
from device_simulators.panel import Panel
from multisig import MultisigError
from multisig.wire import WireError, with_length

PROTOCOL_VERSION = 1
BITCOIN_APPS = frozenset({"Bitcoin", "Bitcoin Test"})

_VERSION_FORMAT = b"\x01"
_FLAGS = b"\x00"

_log = logging.getLogger(__name__)

_Handler = Callable[[LedgerWork, LedgerWallet, bytes], Awaitable[bytes]]

_HANDLERS: dict[int, _Handler] = {
    Bitcoin.GET_EXTENDED_PUBKEY: get_extended_pubkey,
    Bitcoin.REGISTER_WALLET: register_wallet,
    Bitcoin.GET_WALLET_ADDRESS: get_wallet_address,
    Bitcoin.SIGN_MESSAGE: sign_message,
}


@dataclass(frozen=True)
class SimulatedApp:
    """The app that is open on the device. One that is not Bitcoin's answers GET_VERSION only."""

    name: str
    version: str

    @property
    def is_bitcoin(self) -> bool:
        return self.name in BITCOIN_APPS


class LedgerDispatcher:
    """`start_silence` ends the app unless its timer is cancelled."""

    def __init__(
        self,
        wallet: LedgerWallet,
        panel: Panel,
        app: Callable[[], SimulatedApp],
        misbehaviour: Misbehaviour,
        start_silence: Callable[[], Timer],
    ) -> None:
        self.locked = False
        self._wallet = wallet
        self._panel = panel
        self._app = app
        self._misbehaviour = misbehaviour
        self._start_silence = start_silence
        self._work: LedgerWork | None = None
        self._task: asyncio.Task[None] | None = None

    def handle(self, raw: bytes, send: Send) -> None:
        """Take one command; `send` answers the host that it comes from, as long as that is there."""
        if self.locked:
            send(ApduReply(StatusWord.LOCKED))
            return
        try:
            apdu = Apdu.parse(raw)
        except MalformedApdu:
            send(ApduReply(StatusWord.WRONG_LENGTH))
            return
        if self._work is None:
            self._begin(apdu, send)
        elif not self._work.interrupted:
            send(ApduReply(StatusWord.BUSY))
        elif apdu.continues:
            self._work.send = send
            self._work.deliver(apdu.data)
        else:
            # The host of the open command has gone: the command ends here, and the next one is taken.
            self.drop()
            send(ApduReply(StatusWord.INCORRECT_DATA))

    def lock(self) -> None:
        """The screen asks for the PIN; what was under way is over."""
        self.locked = True
        if self._work is not None:
            self._work.send(ApduReply(StatusWord.LOCKED))
            self.drop()

    def drop(self) -> None:
        """End the work under way without a word; its prompt leaves the screen before another one comes."""
        self._work = None
        if self._task is not None:
            self._task.cancel()

    async def clear(self) -> None:
        """`drop`, and wait until it is done."""
        self.drop()
        if self._task is not None:
            await asyncio.wait({self._task})

    def _begin(self, apdu: Apdu, send: Send) -> None:
        try:
            reply = self._at_once(apdu)
        except Silenced:
            return
        if reply is not None:
            send(reply)
            return
        self._work = LedgerWork(self._panel, send, self._misbehaviour, self._start_silence)
        self._task = asyncio.create_task(self._run(self._work, apdu, self._task))

    def _at_once(self, apdu: Apdu) -> ApduReply | None:
        """The answer to what needs neither host nor person; None for a command that is worked on."""
        if apdu.cla == Class.SYSTEM:
            return self._system(apdu)
        objection = self._objection(apdu)
        if objection is not None:
            return ApduReply(objection)
        if apdu.ins == Bitcoin.GET_MASTER_FINGERPRINT:
            return ApduReply(StatusWord.OK, bytes(self._wallet.seed.fingerprint))
        return None

    def _objection(self, apdu: Apdu) -> StatusWord | None:
        """Why the app does not look at the data of this command; None where it does."""
        objections = (
            (not self._app().is_bitcoin, StatusWord.UNKNOWN_CLASS),
            (apdu.p2 > PROTOCOL_VERSION, StatusWord.WRONG_P1P2),
            (apdu.continues, StatusWord.BAD_STATE),
            (apdu.cla != Class.BITCOIN, StatusWord.UNKNOWN_CLASS),
            (apdu.ins not in set(Bitcoin), StatusWord.UNKNOWN_INSTRUCTION),
        )
        return next((status for applies, status in objections if applies), None)

    def _system(self, apdu: Apdu) -> ApduReply:
        if apdu.ins == System.GET_VERSION:
            self._misbehaviour.reach(Phase.PROBE)
            app = self._app()
            names = with_length(app.name.encode("ascii")) + with_length(app.version.encode("ascii"))
            return ApduReply(StatusWord.OK, _VERSION_FORMAT + names + with_length(_FLAGS))
        # To quit an app that is the whole device changes nothing.
        return ApduReply(StatusWord.OK if apdu.ins == System.QUIT else StatusWord.UNKNOWN_INSTRUCTION)

    async def _run(self, work: LedgerWork, apdu: Apdu, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        reply = await self._answer(work, apdu)
        if self._work is work:
            # Free before the host hears of it: its next command comes at once.
            self._work = None
            if reply is not None:
                work.send(reply)

    async def _answer(self, work: LedgerWork, apdu: Apdu) -> ApduReply | None:
        try:
            return ApduReply(StatusWord.OK, await self._handler(apdu)(work, self._wallet, apdu.data))
        except Silenced:
            return None
        except LedgerRefused as refusal:
            return ApduReply(refusal.status)
        except (MultisigError, WireError):
            return ApduReply(StatusWord.INCORRECT_DATA)
        except Exception:  # noqa: BLE001 - outermost: a bug here must not leave the host waiting for ever
            _log.exception("the virtual Ledger failed at instruction 0x%02x", apdu.ins)
            return ApduReply(StatusWord.TECHNICAL_PROBLEM)

    def _handler(self, apdu: Apdu) -> _Handler:
        if apdu.ins == Bitcoin.SIGN_PSBT:
            return partial(sign_psbt, version=apdu.p2)
        return _HANDLERS[apdu.ins]
