"""What the device does with a message, by what it is doing: one table for a Trezor One's firmware.

There is one cable. The firmware does not know which program a message comes from, and answers whoever wrote last
(legacy/v1.14.1, legacy/firmware/messages.c, legacy/emulator/udp.c). While a question is on the screen it takes the answers
that it may wait for, Cancel and Initialize, and ignores the rest without a word.

Newer models (core/v2.3.6, core/src/trezor/wire/__init__.py) drop what they do at any message that is not the one they wait
for, and then take that message: `Model.swallows` is False.
"""

from enum import Enum, auto

from device_simulators.trezor.messages import (
    ButtonAck,
    Cancel,
    GetFeatures,
    Initialize,
    PassphraseAck,
    PinMatrixAck,
    SignTx,
    TxAck,
)
from device_simulators.trezor.protobuf import Message


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


class Action(Enum):
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


ROUTES: dict[tuple[Mode, Sort], Action] = {
    (Mode.IDLE, Sort.LOOK): Action.ANSWER,
    (Mode.IDLE, Sort.BEGIN): Action.START,
    (Mode.IDLE, Sort.SIGN): Action.START,
    (Mode.IDLE, Sort.COMMAND): Action.START,
    (Mode.IDLE, Sort.REPLY): Action.SAY_UNEXPECTED,
    (Mode.IDLE, Sort.CANCEL): Action.ABORT,
    (Mode.ASKING, Sort.LOOK): Action.IGNORE,
    (Mode.ASKING, Sort.BEGIN): Action.RESTART,
    (Mode.ASKING, Sort.SIGN): Action.IGNORE,
    (Mode.ASKING, Sort.COMMAND): Action.IGNORE,
    (Mode.ASKING, Sort.DUE): Action.DELIVER,
    (Mode.ASKING, Sort.REPLY): Action.IGNORE,
    (Mode.ASKING, Sort.CANCEL): Action.ABORT,
    (Mode.FETCHING, Sort.LOOK): Action.ANSWER,
    (Mode.FETCHING, Sort.BEGIN): Action.RESTART,
    (Mode.FETCHING, Sort.SIGN): Action.RESTART,
    (Mode.FETCHING, Sort.COMMAND): Action.START,
    (Mode.FETCHING, Sort.DUE): Action.DELIVER,
    (Mode.FETCHING, Sort.REPLY): Action.SAY_UNEXPECTED,
    (Mode.FETCHING, Sort.CANCEL): Action.ABORT,
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
