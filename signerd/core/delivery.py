"""The stored signature on its way to the platform, and the platform's answers."""

from dataclasses import replace

from signerd.core import events
from signerd.core.audit import Note
from signerd.core.effects import Effect, Level, Notify, ReadKeys
from signerd.core.following import ended
from signerd.core.states import Move, State, advance
from signerd.core.step import Step, due_effects, go_on
from signerd.core.text import plain
from signerd.core.values import Record, ReviewContext
from signerd.errors import IllegalEvent

# The platform's word for "no longer pending": the next poll tells what became of it.
NO_LONGER_PENDING = "STATE_CONFLICT"
# Its word about the key, not about the proposal: what else it says of our keys is read at once.
KEY_REVOKED = "KEY_REVOKED"
# Where a later poll may have taken the proposal while the answer to our submission was still on its way.
OVERTAKEN = frozenset({State.BROADCAST, State.CONFIRMED, State.EXPIRED, State.SUPERSEDED, State.WITHDRAWN})


def submit_started(record: Record, _event: events.SubmitStarted, _around: ReviewContext) -> Step:
    if record.signature is None:
        raise IllegalEvent("there is no signature to submit")
    started = replace(record, state=advance(record.state, Move.SUBMIT))
    facts = {"idempotency_key": record.signature.idempotency_key}
    return Step(started, notes=(Note("submitting", record.psbt_id, facts),))


def submit_accepted(record: Record, event: events.SubmitAccepted, _around: ReviewContext) -> Step:
    if record.state in OVERTAKEN:
        return _late(record, "accepted")
    reason = f"{event.collected} of {event.required} signatures are there."
    accepted = replace(record, state=advance(record.state, Move.ACCEPTED), reason=reason)
    facts = {"collected": event.collected, "required": event.required}
    return go_on(Step(accepted, notes=(Note("submitted", record.psbt_id, facts),)), ended)


def submit_undelivered(record: Record, event: events.SubmitUndelivered, around: ReviewContext) -> Step:
    if record.state in OVERTAKEN:
        return _late(record, "undelivered")
    waiting = replace(record, state=advance(record.state, Move.UNDELIVERED), reason=event.sentence)
    note = Note("undelivered", record.psbt_id, {"sentence": event.sentence})
    return Step(waiting, due_effects(waiting, around), (note,))


def submit_turned_down(record: Record, event: events.SubmitTurnedDown, _around: ReviewContext) -> Step:
    if record.state in OVERTAKEN:
        return _late(record, event.code)
    move = Move.WITHDRAW if event.code == NO_LONGER_PENDING else Move.TURNED_DOWN
    reason = f"The platform did not take the signature: {plain(event.sentence)}"
    refused = replace(record, state=advance(record.state, move), reason=reason)
    facts = {"code": event.code, "sentence": event.sentence}
    told: tuple[Effect, ...] = (Notify(record.psbt_id, Level.ATTENTION, reason),)
    if event.code == KEY_REVOKED:
        told = (*told, ReadKeys())
    return go_on(Step(refused, told, (Note("turned-down", record.psbt_id, facts),)), ended)


def _late(record: Record, answer: str) -> Step:
    """The platform's later word already stands: the answer is noted and changes nothing."""
    return Step(record, notes=(Note("late-answer", record.psbt_id, {"answer": answer}),))


def decline_delivered(record: Record, event: events.DeclineDelivered, _around: ReviewContext) -> Step:
    if record.decline is None:
        raise IllegalEvent("nothing was declined")
    delivered = replace(record, decline=replace(record.decline, delivered=True))
    return Step(delivered, notes=(Note("decline-delivered", record.psbt_id, {"sentence": event.sentence}),))
