"""What goes into the engine and comes out of it: events, the effects to perform, and the step that a decision
makes.

Events are what can happen to a proposal: frozen values that the runner and the person feed to the engine.
Effects are what the core asks of the outside: the runner performs them after they are recorded.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from custody.schemas.proposals import ProposalStatus
from multisig import Fingerprint, Policy
from signerd.core.audit import Note
from signerd.core.signing import signing_of
from signerd.core.states import State
from signerd.core.tokens import hidden_parts, payload_of_bytes, screen_words
from signerd.core.values import Record, ReviewContext, Snapshot


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
class Exported:
    """The person takes the PSBT to a device without a cable. ``by``: as ``Approved``.

    ``request_sha256``: of the bytes that leave, which is the PSBT without what a device does not need.
    """

    by: str = ""
    request_sha256: str = ""


@dataclass(frozen=True)
class Answered:
    """What such a device wrote, as it was brought. The bytes are not believed yet."""

    psbt: bytes = field(repr=False)
    by: str = ""


@dataclass(frozen=True)
class DeviceReturned:
    """The device gave signatures. The bytes are not believed yet."""

    psbt: bytes


@dataclass(frozen=True)
class DeviceFailed:
    """No signature came. ``asked``: the person may have been shown something; else the device was just not
    ready.
    """

    code: str
    sentence: str
    asked: bool


@dataclass(frozen=True)
class SubmitStarted:
    """The stored bytes are about to leave."""


@dataclass(frozen=True)
class SubmitAccepted:
    """The platform holds our signature, or needs it no more. ``status``: of the proposal by now, where it
    says so. ``sentence``: what it says beside that, if anything.
    """

    collected: int
    required: int
    sentence: str = ""
    status: ProposalStatus = ProposalStatus.PENDING


@dataclass(frozen=True)
class SubmitUndelivered:
    """No answer, or one that says to try again. The platform may hold the signature all the same."""

    sentence: str


@dataclass(frozen=True)
class SubmitKept:
    """A no for now: what it hangs on may change, and the same signature be taken then."""

    code: str
    sentence: str


@dataclass(frozen=True)
class SubmitTurnedDown:
    """A final no from the platform."""

    code: str
    sentence: str


@dataclass(frozen=True)
class DeclineDelivered:
    """The platform has answered the person's no. ``sentence``: what it says beside that, if anything: that
    it needs it no more, or has their signature.
    """

    sentence: str = ""


@dataclass(frozen=True)
class Restarted:
    """The daemon starts, and does not know how far an effect went."""


@dataclass(frozen=True)
class Recalled:
    """The journal was restored: what the platform shows of the proposal may carry a signature of ours."""


@dataclass(frozen=True)
class Replaced:
    """After the signature, the proposal ``by`` was heard of, which was made to replace it: that one may be
    over by now.
    """

    by: str


@dataclass(frozen=True)
class TakenBack:
    """The app or person that imported it no longer asks for a signature."""


@dataclass(frozen=True)
class Lapsed:
    """The time is over: in which an imported PSBT could be decided about, a signature be submitted, or what
    ended be followed.
    """


Event = (
    Polled
    | Reconsidered
    | Approved
    | Refused
    | DeviceFound
    | Exported
    | Answered
    | DeviceReturned
    | DeviceFailed
    | SubmitStarted
    | SubmitAccepted
    | SubmitUndelivered
    | SubmitKept
    | SubmitTurnedDown
    | DeclineDelivered
    | Restarted
    | Recalled
    | Replaced
    | TakenBack
    | Lapsed
)


@dataclass(frozen=True)
class AskPerson:
    """Show the proposal and wait for a yes or a no. ``screen``: what the device will not show, in words; else
    empty.
    """

    psbt_id: str
    screen: str = ""


@dataclass(frozen=True)
class FindDevice:
    """Wait until the device with this fingerprint is ready."""

    psbt_id: str
    fingerprint: Fingerprint


@dataclass(frozen=True)
class SignOnDevice:
    """Ask the device. Performed at most once for each recorded *signing*."""

    psbt_id: str
    psbt: bytes = field(repr=False)
    policy: Policy
    fingerprint: Fingerprint
    device: str


@dataclass(frozen=True)
class GiveOut:
    """Let the person have this PSBT. Performed only once *exported* is recorded; safe to repeat."""

    psbt_id: str
    psbt: bytes = field(repr=False)
    policy: Policy


@dataclass(frozen=True)
class Submit:
    """Send these stored bytes under this key; safe to repeat."""

    psbt_id: str
    workspace_id: int
    psbt: bytes = field(repr=False)
    idempotency_key: str


@dataclass(frozen=True)
class SubmitDecline:
    """Tell the platform of the person's no; safe to repeat."""

    psbt_id: str
    workspace_id: int
    reason: str
    idempotency_key: str


class Level(StrEnum):
    ATTENTION = "attention"
    ALARM = "alarm"


# What is told about no proposal and no vault.
REGISTRATION = "registration"


@dataclass(frozen=True)
class Notify:
    """Tell the person something that needs no answer: about a proposal, a vault, or the registration."""

    psbt_id: str
    level: Level
    sentence: str


@dataclass(frozen=True)
class ReadKeys:
    """The platform spoke of our key as revoked: read what it says of our keys, now."""


Effect = AskPerson | FindDevice | SignOnDevice | GiveOut | Submit | SubmitDecline | Notify | ReadKeys


@dataclass(frozen=True)
class Step:
    """What a decision changes. The same record and no notes mean that nothing happened."""

    record: Record
    effects: tuple[Effect, ...] = ()
    notes: tuple[Note, ...] = ()


def go_on(step: Step, then: Callable[[Record], Step | None]) -> Step:
    """Go on from a step's record; where the second step moves on, the first one's standing
    effects are void.
    """
    following = then(step.record)
    if following is None:
        return step
    lasting = tuple(effect for effect in step.effects if isinstance(effect, Notify | ReadKeys))
    return Step(following.record, lasting + following.effects, step.notes + following.notes)


def due_effects(record: Record, around: ReviewContext) -> tuple[Effect, ...]:
    """What the record's state asks of the outside, now and again after every restart."""
    snapshot = record.snapshot
    match record.state:
        case State.WAITING_PERSON | State.INTERRUPTED:
            return (AskPerson(record.psbt_id, _not_on_screen(snapshot, around)),)
        case State.WAITING_DEVICE:
            signing = signing_of(snapshot, around)
            return () if signing is None else (FindDevice(record.psbt_id, signing.key.origin.fingerprint),)
        case State.SIGNED | State.KEPT if record.signature is not None:
            stored = record.signature
            return (Submit(record.psbt_id, snapshot.workspace_id, stored.psbt, stored.idempotency_key),)
        case State.DECLINED if record.decline is not None and not record.decline.delivered:
            reason = record.decline.reason
            key = request_key("decline", record.psbt_id, reason.encode())
            return (SubmitDecline(record.psbt_id, snapshot.workspace_id, reason, key),)
        case _:
            return ()


def _not_on_screen(snapshot: Snapshot, around: ReviewContext) -> str:
    payload = payload_of_bytes(snapshot.psbt) if snapshot.is_of_token else None
    if payload is None or not hidden_parts(payload, around.screen):
        return ""
    return screen_words(payload, around.screen)


def request_key(purpose: str, psbt_id: str, content: bytes) -> str:
    """The same bytes for the same proposal always travel under the same Idempotency-Key."""
    digest = hashlib.sha256(content).digest()
    return hashlib.sha256(f"signerd/{purpose}/{psbt_id}/".encode() + digest).hexdigest()
