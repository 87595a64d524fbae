"""What is to be done about a proposal follows from its stored record alone: a restart does the same."""

from enum import Enum, auto

from signerd.core.states import State
from signerd.core.values import Record


class Work(Enum):
    """``SUBMIT`` and ``TELL_DECLINE`` are safe to repeat: the same bytes under the same key."""

    ASK_DEVICE = auto()
    SUBMIT = auto()
    TELL_DECLINE = auto()


def todo(record: Record) -> Work | None:
    """In SIGNING and SUBMITTING it is being done; ``Restarted`` leads out of both."""
    match record.state:
        case State.WAITING_DEVICE:
            return Work.ASK_DEVICE
        case State.SIGNED | State.KEPT if record.signature is not None:
            return Work.SUBMIT
        case State.DECLINED if record.decline is not None and not record.decline.delivered:
            return Work.TELL_DECLINE
        case _:
            return None
