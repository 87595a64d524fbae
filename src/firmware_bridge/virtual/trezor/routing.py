"""Which message of which host the device heeds: it does one thing at a time, and only for the host that asked.

A host that merely looks (GetFeatures) disturbs nothing; any other command of a stranger is refused as busy, so that a scan
does not break a signature under way. Cancel is heeded from everyone, as on the one cable of a real device: it frees a device
whose host died while a prompt was open.
"""

from enum import Enum, auto

from firmware_bridge.virtual.trezor.messages import (
    ButtonAck,
    Cancel,
    GetFeatures,
    Initialize,
    PassphraseAck,
    PinMatrixAck,
    TxAck,
)
from firmware_bridge.virtual.trezor.protobuf import Message


class Standing(Enum):
    """What the sender is to the work under way."""

    IDLE = auto()
    """There is none."""
    OWNER = auto()
    STRANGER = auto()
    HEIR = auto()
    """A stranger, and the owner has long been silent where it was to answer."""


class Sort(Enum):
    """What a message is for."""

    LOOK = auto()
    BEGIN = auto()
    """Initialize: the host starts afresh."""
    COMMAND = auto()
    REPLY = auto()
    PIN = auto()
    """A PIN, and one is waited for: the host that brings it may be another than the one that asked."""
    CANCEL = auto()


class Action(Enum):
    ANSWER = auto()
    """Tell the features."""
    START = auto()
    RESTART = auto()
    """Drop the work without a word, then start."""
    DELIVER = auto()
    """Hand it to the work."""
    ADOPT = auto()
    """The sender becomes the owner, then deliver."""
    ABORT = auto()
    """End the work, and tell its owner and the sender that it was cancelled."""
    SAY_BUSY = auto()
    SAY_UNEXPECTED = auto()


ROUTES: dict[tuple[Standing, Sort], Action] = {
    (Standing.IDLE, Sort.LOOK): Action.ANSWER,
    (Standing.IDLE, Sort.BEGIN): Action.START,
    (Standing.IDLE, Sort.COMMAND): Action.START,
    (Standing.IDLE, Sort.REPLY): Action.SAY_UNEXPECTED,
    (Standing.IDLE, Sort.CANCEL): Action.ABORT,
    (Standing.OWNER, Sort.LOOK): Action.ANSWER,
    (Standing.OWNER, Sort.BEGIN): Action.RESTART,
    (Standing.OWNER, Sort.COMMAND): Action.RESTART,
    (Standing.OWNER, Sort.REPLY): Action.DELIVER,
    (Standing.OWNER, Sort.PIN): Action.DELIVER,
    (Standing.OWNER, Sort.CANCEL): Action.ABORT,
    (Standing.STRANGER, Sort.LOOK): Action.ANSWER,
    (Standing.STRANGER, Sort.BEGIN): Action.SAY_BUSY,
    (Standing.STRANGER, Sort.COMMAND): Action.SAY_BUSY,
    (Standing.STRANGER, Sort.REPLY): Action.SAY_UNEXPECTED,
    (Standing.STRANGER, Sort.PIN): Action.ADOPT,
    (Standing.STRANGER, Sort.CANCEL): Action.ABORT,
    (Standing.HEIR, Sort.LOOK): Action.ANSWER,
    (Standing.HEIR, Sort.BEGIN): Action.RESTART,
    (Standing.HEIR, Sort.COMMAND): Action.RESTART,
    (Standing.HEIR, Sort.REPLY): Action.SAY_UNEXPECTED,
    (Standing.HEIR, Sort.PIN): Action.ADOPT,
    (Standing.HEIR, Sort.CANCEL): Action.ABORT,
}

_SORTS: dict[type[Message], Sort] = {
    GetFeatures: Sort.LOOK,
    Initialize: Sort.BEGIN,
    Cancel: Sort.CANCEL,
    ButtonAck: Sort.REPLY,
    TxAck: Sort.REPLY,
    PinMatrixAck: Sort.REPLY,
    PassphraseAck: Sort.REPLY,
}


def sort_of(message: Message, awaits: type[Message] | None) -> Sort:
    """What a message is for; `awaits` is what the work under way waits for."""
    if awaits is PinMatrixAck and isinstance(message, PinMatrixAck):
        return Sort.PIN
    return _SORTS.get(type(message), Sort.COMMAND)


PATIENCE: dict[type[Message], float] = {PinMatrixAck: 120.0, PassphraseAck: 120.0}
"""Seconds until a silent owner counts as gone, where a person types at the host."""
MACHINE_PATIENCE = 10.0
"""The same where the host's program answers by itself: it does so in milliseconds."""
