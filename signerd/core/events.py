"""What can happen to a proposal: frozen values that the runner and the person feed to the engine."""

from dataclasses import dataclass

from signerd.core.values import Snapshot


@dataclass(frozen=True)
class Polled:
    """The platform's word, new or again."""

    snapshot: Snapshot


@dataclass(frozen=True)
class Reconsidered:
    """A pin, a registered key or a limit changed: judge it anew."""


@dataclass(frozen=True)
class Approved:
    """The person's yes to exactly what ``digest`` covers, naming the warnings that hold it.

    ``by``: where it was said, or which app said it; nothing where that is not known.
    """

    digest: str
    acknowledged: frozenset[str] = frozenset()
    by: str = ""


@dataclass(frozen=True)
class Refused:
    """The person's no. ``reason`` goes to the platform; ``by``: as ``Approved``."""

    reason: str
    by: str = ""


@dataclass(frozen=True)
class DeviceFound:
    """The device that holds our key is ready to be asked."""

    device: str


@dataclass(frozen=True)
class DeviceReturned:
    """The device gave signatures. The bytes are not believed yet."""

    psbt: bytes


@dataclass(frozen=True)
class DeviceFailed:
    """No signature came. ``asked``: the person may have been shown something; else the device was just not ready."""

    code: str
    sentence: str
    asked: bool


@dataclass(frozen=True)
class SubmitStarted:
    """The stored bytes are about to leave."""


@dataclass(frozen=True)
class SubmitAccepted:
    """The platform holds our signature."""

    collected: int
    required: int


@dataclass(frozen=True)
class SubmitUndelivered:
    """No answer, or one that says to try again. The platform may hold the signature all the same."""

    sentence: str


@dataclass(frozen=True)
class SubmitTurnedDown:
    """A final no from the platform."""

    code: str
    sentence: str


@dataclass(frozen=True)
class DeclineDelivered:
    """The platform knows the person's no, or no longer needs it (``sentence`` says which)."""

    sentence: str = ""


@dataclass(frozen=True)
class Restarted:
    """The daemon starts, and does not know how far an effect went."""


@dataclass(frozen=True)
class TakenBack:
    """Whoever brought it asks for no signature any more."""


@dataclass(frozen=True)
class Lapsed:
    """Nobody decided about what was brought in the time that it had."""


Event = (
    Polled
    | Reconsidered
    | Approved
    | Refused
    | DeviceFound
    | DeviceReturned
    | DeviceFailed
    | SubmitStarted
    | SubmitAccepted
    | SubmitUndelivered
    | SubmitTurnedDown
    | DeclineDelivered
    | Restarted
    | TakenBack
    | Lapsed
)
