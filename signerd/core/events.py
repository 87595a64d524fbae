"""The engine's input and output: events, and steps with the news for the person."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from custody.schemas.proposals import ProposalStatus
from signerd.core.audit import Note
from signerd.core.tokens import hidden_parts, payload_of_bytes, screen_words
from signerd.core.values import Record, ReviewContext, Snapshot


class ProposalEvent:
    """What can happen to a proposal."""


@dataclass(frozen=True)
class Polled(ProposalEvent):
    """The platform's current state of the proposal."""

    snapshot: Snapshot


@dataclass(frozen=True)
class Reconsidered(ProposalEvent):
    """A pin, a registered key or a limit changed: review it again."""


@dataclass(frozen=True)
class Approved(ProposalEvent):
    """The person's approval of exactly what ``digest`` covers, with the acknowledged warnings.

    ``by``: the interface or app that it came from; empty if unknown.
    """

    digest: str
    acknowledged: frozenset[str] = frozenset()
    by: str = ""


@dataclass(frozen=True)
class PersonDeclined(ProposalEvent):
    """The person declines. ``reason`` goes to the platform; ``by``: as ``Approved``."""

    reason: str
    by: str = ""


@dataclass(frozen=True)
class DeviceFound(ProposalEvent):
    """The device that holds our key is ready to be asked."""

    device: str


@dataclass(frozen=True)
class Exported(ProposalEvent):
    """The person exports the PSBT for a device without a cable. ``by``: as ``Approved``.

    ``request_sha256``: of the exported bytes, which leave out what a device does not need.
    """

    by: str = ""
    request_sha256: str = ""


@dataclass(frozen=True)
class AnswerImported(ProposalEvent):
    """The imported answer of such a device; not verified yet."""

    psbt: bytes = field(repr=False)
    by: str = ""


@dataclass(frozen=True)
class DeviceReturned(ProposalEvent):
    """The device returned signatures; not verified yet."""

    psbt: bytes


@dataclass(frozen=True)
class NoSignature(ProposalEvent):
    """No signature. ``asked``: the device may have shown something; else it was only not ready."""

    code: str
    sentence: str
    asked: bool


@dataclass(frozen=True)
class SubmitStarted(ProposalEvent):
    """The stored signature is about to be sent."""


@dataclass(frozen=True)
class SubmitAccepted(ProposalEvent):
    """The platform has our signature, or no longer needs it. ``status``: the proposal's, if given.
    ``sentence``: its remark, if any.
    """

    collected: int
    required: int
    sentence: str = ""
    status: ProposalStatus = ProposalStatus.PENDING


@dataclass(frozen=True)
class SubmitUndelivered(ProposalEvent):
    """No answer, or one that says to try again. The platform may have the signature."""

    sentence: str


@dataclass(frozen=True)
class SubmitKept(ProposalEvent):
    """A temporary refusal: its cause may change, and the same signature may be accepted then."""

    code: str
    sentence: str


@dataclass(frozen=True)
class SubmitTurnedDown(ProposalEvent):
    """A final refusal by the platform."""

    code: str
    sentence: str


@dataclass(frozen=True)
class DeclineDelivered(ProposalEvent):
    """The platform has answered the decline. ``sentence``: its remark, if any."""

    sentence: str = ""


@dataclass(frozen=True)
class Restarted(ProposalEvent):
    """The daemon started again; what it did may have been interrupted."""


@dataclass(frozen=True)
class Recalled(ProposalEvent):
    """The journal was restored, and the platform's PSBT may have a signature of ours."""


@dataclass(frozen=True)
class Replaced(ProposalEvent):
    """The proposal ``by`` was made to replace this one after it was signed; ``by`` may have ended."""

    by: str


@dataclass(frozen=True)
class TakenBack(ProposalEvent):
    """The app or person that imported it no longer asks for a signature."""


@dataclass(frozen=True)
class ImportedAgain(ProposalEvent):
    """Another copy of an imported PSBT, which may carry signatures of others; not verified yet."""

    psbt: bytes = field(repr=False)


@dataclass(frozen=True)
class Lapsed(ProposalEvent):
    """A deadline passed: to decide about an imported PSBT, to submit a signature, or to follow what ended."""


@dataclass(frozen=True)
class AskPerson:
    """Ask the person to approve or decline. ``screen``: what the device will not show, in words, or empty."""

    psbt_id: str
    screen: str = ""


class Level(StrEnum):
    INFO = "info"
    ATTENTION = "attention"
    ALARM = "alarm"


# The subject of notifications about the registration.
REGISTRATION = "registration"


@dataclass(frozen=True)
class Notify:
    """Notify the person: about a proposal, a vault, or the registration."""

    psbt_id: str
    level: Level
    sentence: str


@dataclass(frozen=True)
class ReadKeys:
    """The platform reported our key as revoked: read our keys now."""


@dataclass(frozen=True)
class JudgeAgain:
    """What all proposals are judged by has changed: judge those that wait for the person again, in turn."""


News = AskPerson | Notify | ReadKeys | JudgeAgain


@dataclass(frozen=True)
class Step:
    """The result of a decision. The same record and no notes mean that nothing happened."""

    record: Record
    news: tuple[News, ...] = ()
    notes: tuple[Note, ...] = ()


def then_step(step: Step, then: Callable[[Record], Step | None]) -> Step:
    following = then(step.record)
    if following is None:
        return step
    return Step(following.record, step.news + following.news, step.notes + following.notes)


def ask_person(snapshot: Snapshot, context: ReviewContext) -> AskPerson:
    payload = payload_of_bytes(snapshot.psbt) if snapshot.is_of_token else None
    if payload is None or not hidden_parts(payload, context.screen):
        return AskPerson(snapshot.psbt_id)
    return AskPerson(snapshot.psbt_id, screen_words(payload, context.screen))


def request_key(purpose: str, psbt_id: str, content: bytes) -> str:
    """The Idempotency-Key of these bytes for this proposal."""
    digest = hashlib.sha256(content).digest()
    return hashlib.sha256(f"signerd/{purpose}/{psbt_id}/".encode() + digest).hexdigest()
