"""One command that the device carries out, and what the device does with a message that arrives meanwhile:
one table for a Trezor One's firmware.

There is one cable. The firmware does not know which program a message comes from, and answers the one that
wrote last (legacy/v1.14.1, legacy/firmware/messages.c, legacy/emulator/udp.c). While a question is on the
screen it takes the answers that it may wait for, Cancel and Initialize, and ignores the rest without a word.

Newer models (core/v2.3.6, core/src/trezor/wire/__init__.py) drop what they do at any message that is not the
one they wait for, and then take that message.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

from device_simulators.faults import Misbehaviour, Phase
from device_simulators.panel import Panel, Prompt
from device_simulators.trezor.messages import (
    ButtonAck,
    ButtonCode,
    ButtonRequest,
    Cancel,
    FailureCode,
    GetFeatures,
    Initialize,
    PassphraseAck,
    PinMatrixAck,
    SignTx,
    TxAck,
)
from device_simulators.trezor.wire import Message


class Mode(Enum):
    """What the device is doing."""

    IDLE = auto()
    ASKING = auto()
    """A question is on its screen, or it waits for a PIN or a passphrase ("tiny" mode in the firmware)."""
    FETCHING = auto()
    """It waits for the next piece of a transaction."""


class Sort(Enum):
    """What a message is for."""

    LOOK = auto()
    BEGIN = auto()
    """Initialize: the host starts afresh."""
    SIGN = auto()
    """SignTx: the one command that goes on over several messages."""
    COMMAND = auto()
    DUE = auto()
    """The reply that the device waits for."""
    REPLY = auto()
    """Any other reply."""
    CANCEL = auto()


class WorkStep(Enum):
    ANSWER = auto()
    """Tell the features."""
    START = auto()
    """Carry it out; a transaction that is being fetched goes on afterwards."""
    RESTART = auto()
    """Drop the work without a word, then carry it out."""
    DELIVER = auto()
    """Hand it to the work."""
    ABORT = auto()
    """End the work, and tell the sender that it was cancelled."""
    IGNORE = auto()
    SAY_UNEXPECTED = auto()


ROUTES: dict[tuple[Mode, Sort], WorkStep] = {
    (Mode.IDLE, Sort.LOOK): WorkStep.ANSWER,
    (Mode.IDLE, Sort.BEGIN): WorkStep.START,
    (Mode.IDLE, Sort.SIGN): WorkStep.START,
    (Mode.IDLE, Sort.COMMAND): WorkStep.START,
    (Mode.IDLE, Sort.REPLY): WorkStep.SAY_UNEXPECTED,
    (Mode.IDLE, Sort.CANCEL): WorkStep.ABORT,
    (Mode.ASKING, Sort.LOOK): WorkStep.IGNORE,
    (Mode.ASKING, Sort.BEGIN): WorkStep.RESTART,
    (Mode.ASKING, Sort.SIGN): WorkStep.IGNORE,
    (Mode.ASKING, Sort.COMMAND): WorkStep.IGNORE,
    (Mode.ASKING, Sort.DUE): WorkStep.DELIVER,
    (Mode.ASKING, Sort.REPLY): WorkStep.IGNORE,
    (Mode.ASKING, Sort.CANCEL): WorkStep.ABORT,
    (Mode.FETCHING, Sort.LOOK): WorkStep.ANSWER,
    (Mode.FETCHING, Sort.BEGIN): WorkStep.RESTART,
    (Mode.FETCHING, Sort.SIGN): WorkStep.RESTART,
    (Mode.FETCHING, Sort.COMMAND): WorkStep.START,
    (Mode.FETCHING, Sort.DUE): WorkStep.DELIVER,
    (Mode.FETCHING, Sort.REPLY): WorkStep.SAY_UNEXPECTED,
    (Mode.FETCHING, Sort.CANCEL): WorkStep.ABORT,
}

_SORTS: dict[type[Message], Sort] = {
    GetFeatures: Sort.LOOK,
    Initialize: Sort.BEGIN,
    SignTx: Sort.SIGN,
    Cancel: Sort.CANCEL,
    ButtonAck: Sort.REPLY,
    TxAck: Sort.REPLY,
    PinMatrixAck: Sort.REPLY,
    PassphraseAck: Sort.REPLY,
}


def sort_of(message: Message | None, awaits: type[Message] | None) -> Sort:
    """What a message is for; `awaits` is what the work under way waits for."""
    if awaits is not None and isinstance(message, awaits):
        return Sort.DUE
    return Sort.COMMAND if message is None else _SORTS.get(type(message), Sort.COMMAND)


Peer = tuple[str, int]
"""A host: the address and port that its datagrams come from."""

A = TypeVar("A", bound=Message)

_TYPED = (PinMatrixAck, PassphraseAck)


class TrezorRefused(Exception):
    """The device refuses; the host reads why in a Failure."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def data_error(message: str) -> TrezorRefused:
    """What the firmware says to a request that makes no sense or is not allowed."""
    return TrezorRefused(FailureCode.DATA_ERROR, message)


def action_cancelled(message: str = "Action cancelled by user") -> TrezorRefused:
    return TrezorRefused(FailureCode.ACTION_CANCELLED, message)


class TrezorWork:
    """A command under way."""

    def __init__(self, panel: Panel, send: Callable[[Message], None], misbehaviour: Misbehaviour) -> None:
        self.panel = panel
        self.send = send
        self.misbehaviour = misbehaviour
        self.awaits: type[Message] | None = None
        """What the host has to send next. None while the device or the person is at work."""
        self._prompting = False
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._listening = asyncio.Event()

    @property
    def mode(self) -> Mode | None:
        """None while it computes: what comes in waits."""
        if self._prompting or self.awaits in _TYPED:
            return Mode.ASKING
        return None if self.awaits is None else Mode.FETCHING

    async def listens(self) -> None:
        """Wait until messages are read again."""
        await self._listening.wait()

    def deliver(self, message: Message) -> None:
        """Hand over what the host sent."""
        self.awaits = None
        self._settle()
        self._inbox.put_nowait(message)

    def end(self) -> None:
        """The command is done: messages are read again at once."""
        self._listening.set()

    async def receive(self, answer: type[A]) -> A:
        """Wait for what the host has to send next."""
        self.awaits = answer
        self._settle()
        received = await self._inbox.get()
        assert isinstance(received, answer), "the dispatcher delivers only what is due"
        return received

    async def confirm(self, code: ButtonCode, prompt: Prompt) -> None:
        """Show it and wait for the person, whose decision counts once the host has acknowledged the prompt.

        :raises Refused: the person said no.
        """
        if not await self.choose(code, prompt):
            raise action_cancelled()

    async def choose(self, code: ButtonCode, prompt: Prompt) -> bool:
        """Which button the person pressed, where the left one does not mean no: True for the right one."""
        decision = asyncio.create_task(self.panel.ask(prompt))
        self._prompting = True
        try:
            # One turn of the loop, so that the prompt is on the screen before the host hears of it.
            await asyncio.sleep(0)
            self.send(ButtonRequest(code=code))
            self.misbehaviour.reach(Phase.PROMPT)
            await self.receive(ButtonAck)
            return await decision
        finally:
            self._prompting = False
            self._settle()
            await _withdraw(decision)

    def _settle(self) -> None:
        if self.mode is None:
            self._listening.clear()
        else:
            self._listening.set()


async def _withdraw(decision: asyncio.Task[bool]) -> None:
    """Take an undecided prompt off the screen; a decided one is gone already."""
    decision.cancel()
    await asyncio.wait({decision})
