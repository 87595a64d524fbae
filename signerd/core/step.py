"""What a decision changes, and how one decision leads to the next."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from signerd.core.audit import Note
from signerd.core.effects import AskPerson, Effect, FindDevice, Notify, ReadKeys, Submit, SubmitDecline
from signerd.core.screens import hidden_parts, screen_words
from signerd.core.signing import signing_of
from signerd.core.states import State
from signerd.core.tokens import payload_of_bytes
from signerd.core.values import Record, ReviewContext, Snapshot


@dataclass(frozen=True)
class Step:
    """What a decision changes. The same record and no notes mean that nothing happened."""

    record: Record
    effects: tuple[Effect, ...] = ()
    notes: tuple[Note, ...] = ()


def go_on(step: Step, then: Callable[[Record], Step | None]) -> Step:
    """Go on from a step's record; where the second step moves on, the first one's standing effects are void."""
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
        case State.SIGNED if record.signature is not None:
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
