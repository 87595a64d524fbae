"""The person's yes and no."""

from dataclasses import replace
from typing import Any

from custody.schemas.proposals import TxType
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.review import Review, review
from signerd.core.states import Move, advance
from signerd.core.step import Step, due_effects
from signerd.core.text import plain
from signerd.core.values import Approval, Decline, Record, ReviewContext
from signerd.errors import IllegalEvent, NeedsAcknowledgement, RefusedByChecks, StaleApproval


def approved(record: Record, event: events.Approved, around: ReviewContext) -> Step:
    state = advance(record.state, Move.APPROVE)
    found = review(record.snapshot, around)
    require_assent(found, Approval(event.digest, event.acknowledged))
    approval = Approval(event.digest, event.acknowledged & found.to_acknowledge)
    approved = replace(record, state=state, approval=approval, reason="")
    note = Note("approved", record.psbt_id, {**_shown(found, approval), **_who(event.by)})
    return Step(approved, due_effects(approved, around), (note,))


def require_assent(found: Review, approval: Approval) -> None:
    """The yes was to what is shown now, nothing in it refuses, and every warning that holds it was named."""
    if approval.digest != found.digest:
        raise StaleApproval("what you approved is not what the proposal shows now")
    if not found.allowed:
        names = ", ".join(verdict.name for verdict in found.refusals)
        raise RefusedByChecks(f"these checks refuse it: {names}")
    missing = found.to_acknowledge - approval.acknowledged
    if missing:
        raise NeedsAcknowledgement(f"these warnings must be named first: {', '.join(sorted(missing))}")


def _shown(found: Review, approval: Approval) -> dict[str, Any]:
    """``payments``: what the vault pays, which the rules count. What a forward pays to the vault is no such thing."""
    assert found.inspection is not None
    paid = [[p.script_pubkey.hex(), int(p.amount)] for p in found.inspection.payments]
    forward = found.snapshot.kind is TxType.FORWARD
    return {
        "acknowledged": sorted(approval.acknowledged),
        "digest": approval.digest,
        "fee_sats": int(found.inspection.fee),
        "payments": [] if forward else paid,
        **({"forwarded": paid} if forward else {}),
    }


def _who(by: str) -> dict[str, str]:
    return {"by": by} if by else {}


def refused(record: Record, event: events.Refused, around: ReviewContext) -> Step:
    if record.signature is not None:
        raise IllegalEvent("you already signed it: declining now changes nothing")
    declined = replace(
        record,
        state=advance(record.state, Move.DECLINE),
        approval=None,
        # Of what was brought the platform knows nothing: there is nobody to tell.
        decline=Decline(event.reason, delivered=record.snapshot.brought is not None),
        reason=f"Declined: {plain(event.reason)}" if event.reason else "Declined.",
    )
    note = Note("declined", record.psbt_id, {"reason": event.reason, **_who(event.by)})
    return Step(declined, due_effects(declined, around), (note,))
