"""The engine: (record, event) → new record, news, notes for the audit chain.

Pure. The journal calls it inside the transaction that stores the result. What is then to be done follows from
the record (``todo``). The handlers are for the person's decision, the device's answer, the submission, and
the end of an imported PSBT.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from custody.common.text import foreign, said
from custody.schemas.proposals import ProposalStatus, TxType
from multisig import (
    MultisigError,
    NotFinalisable,
    Psbt,
    accept_signatures,
    inspect,
    signed_by,
    signer_progress,
)
from signerd.core import events, following
from signerd.core.audit import Note
from signerd.core.events import Level, News, Notify, ReadKeys, Step, then_step
from signerd.core.following import ANEW, COMPLETED, OVER, ended, own_signature, recalled, reconsidered
from signerd.core.review import ProposalReview, review
from signerd.core.signing import SigningPolicy, signing_of
from signerd.core.states import NOT_TAKEN, STOPPED, TABLE, UNDECIDED, ProposalMove, State, advance
from signerd.core.values import Approval, Decline, Record, ReviewContext, psbt_of
from signerd.errors import AnswerRefused, IllegalEvent, NeedsAcknowledgement, RefusedByChecks, StaleApproval


def approved(record: Record, event: events.Approved, context: ReviewContext) -> Step:
    state = advance(record.state, ProposalMove.APPROVE)
    current = review(record.snapshot, context)
    require_assent(current, Approval(event.digest, event.acknowledged))
    approval = Approval(event.digest, event.acknowledged & current.to_acknowledge)
    approved = replace(record, state=state, approval=approval, reason="")
    note = Note("approved", record.psbt_id, {**_shown(current, approval), **_who(event.by)})
    return Step(approved, notes=(note,))


def require_assent(review: ProposalReview, approval: Approval) -> None:
    """Check that the approval is for what is shown now, that no check refuses, and that every warning is
    named.
    """
    if approval.digest != review.digest:
        raise StaleApproval("what you approved is not what the proposal shows now")
    if not review.allowed:
        names = ", ".join(verdict.name for verdict in review.refusals)
        raise RefusedByChecks(f"these checks refuse it: {names}")
    missing = review.to_acknowledge - approval.acknowledged
    if missing:
        raise NeedsAcknowledgement(f"these warnings must be named first: {', '.join(sorted(missing))}")


def _shown(review: ProposalReview, approval: Approval) -> dict[str, Any]:
    """``payments``: what the vault pays, which the rules count; a forward's payment to the vault does not
    count.
    """
    assert review.inspection is not None
    paid = [[p.script_pubkey.hex(), int(p.amount)] for p in review.inspection.payments]
    forward = review.snapshot.kind is TxType.FORWARD
    return {
        "acknowledged": sorted(approval.acknowledged),
        "digest": approval.digest,
        "fee_sats": review.inspection.fee,
        "payments": [] if forward else paid,
        **({"forwarded": paid} if forward else {}),
    }


def _who(by: str) -> dict[str, str]:
    return {"by": by} if by else {}


def refused(record: Record, event: events.PersonDeclined, _around: ReviewContext) -> Step:
    is_on_its_way = record.snapshot.imported is None and record.state in NOT_TAKEN
    if record.signature is not None and not is_on_its_way:
        raise IllegalEvent("you already signed it: declining now changes nothing")
    reason = f"Declined: “{foreign(event.reason)}”." if event.reason else "Declined."
    still_out = SEEN if record.signature is not None else "" if record.exported is None else STILL_OUT
    declined = record.moved(
        ProposalMove.DECLINE,
        approval=None,
        # The platform is not told about an imported PSBT.
        decline=Decline(event.reason, delivered=record.snapshot.imported is not None),
        reason=" ".join(filter(None, (reason, still_out))),
    )
    note = Note("declined", record.psbt_id, {"reason": event.reason, **_who(event.by)})
    return Step(declined, notes=(note,))


# The reason for an exported proposal that has ended here.
STILL_OUT = "It was exported and may be signed all the same: it counts as signed here."
MAY_BE_SIGNED = (
    f"{STOPPED}, and your device may have signed. It is the same transaction: to sign it twice pays once."
)
SEEN = "You had signed it, and the platform may have the signature: it counts as signed here."


def device_found(record: Record, event: events.DeviceFound, context: ReviewContext) -> Step:
    """Checks the approval a last time before the device is asked."""
    state = advance(record.state, ProposalMove.ASK_DEVICE)
    try:
        signing, approval = _require_valid_approval(record, context)
    except (StaleApproval, RefusedByChecks, NeedsAcknowledgement):
        return _approval_lapsed(record, context)
    fingerprint = str(signing.key.origin.fingerprint)
    facts = {"device": event.device, "digest": approval.digest, "fingerprint": fingerprint}
    return Step(replace(record, state=state), notes=(Note("device-asked", record.psbt_id, facts),))


def _require_valid_approval(record: Record, context: ReviewContext) -> tuple[SigningPolicy, Approval]:
    """The key and policy to sign with, and the approval, if it is still valid. Raises as
    ``require_assent``.
    """
    signing = signing_of(record.snapshot, context)
    if record.approval is None or record.signature is not None or signing is None:
        raise StaleApproval("what you approved is not what the proposal shows now")
    require_assent(review(record.snapshot, context), record.approval)
    return signing, record.approval


def exported(record: Record, event: events.Exported, context: ReviewContext) -> Step:
    """As for a connected device. From here on it may be signed, which cannot be reverted.

    A repeated export gives the same bytes; it raises where the approval is no longer valid.
    """
    state, again = advance(record.state, ProposalMove.EXPORT), record.exported is not None
    try:
        signing, approval = _require_valid_approval(record, context)
    except (StaleApproval, RefusedByChecks, NeedsAcknowledgement):
        if again:
            raise
        return _approval_lapsed(record, context)
    psbt = record.snapshot.psbt if record.exported is None else record.exported
    facts = {
        "digest": approval.digest,
        "fingerprint": str(signing.key.origin.fingerprint),
        "psbt_sha256": hashlib.sha256(psbt).hexdigest(),
        **({"request_sha256": event.request_sha256} if event.request_sha256 else {}),
        **_who(event.by),
    }
    notes = () if again else (Note("exported", record.psbt_id, facts),)
    return Step(replace(record, state=state, exported=psbt), notes=notes)


def answered(record: Record, event: events.AnswerImported, context: ReviewContext) -> Step:
    """S19: as ``device_returned``, against the bytes that were exported.

    Raises what ``require_assent`` raises, and AnswerRefused; nothing has changed, and another file may be
    imported. Days may have passed: a payment that was signed meanwhile, or a changed vault, must stop this
    one.
    """
    state = advance(record.state, ProposalMove.ANSWERED)
    signing, _approval = _require_valid_approval(record, context)
    assert record.exported is not None, "only from the state *exported*"
    try:
        signed = _complete(_from_file(record, psbt_of(record.exported), event.psbt, signing), signing)
    except MultisigError as error:
        raise AnswerRefused(said(error)) from error
    return _signed(replace(record, state=state), signed, signing, context, event.by)


def _approval_lapsed(record: Record, context: ReviewContext) -> Step:
    sentence = "The proposal changed after you approved it: look at it again."
    note = Note("approval-lapsed", record.psbt_id)
    again = reconsidered(record, events.Reconsidered(), context)
    notice = Notify(record.psbt_id, Level.ATTENTION, sentence)
    return Step(again.record, (*again.news, notice), (note, *again.notes))


def device_returned(record: Record, event: events.DeviceReturned, context: ReviewContext) -> Step:
    """S19: only verified signatures are used of the returned PSBT, and every input must have ours."""
    verified = record.moved(ProposalMove.VERIFIED)
    signing = signing_of(record.snapshot, context)
    if signing is None or (context.pin is None and not record.snapshot.is_of_profile):
        return _verify_failed(record, "the vault is no longer pinned.")
    policy, signer = signing.policy, signing.key.origin.fingerprint
    try:
        sent, returned = psbt_of(record.snapshot.psbt), Psbt.parse(event.psbt)
        signed = _complete(accept_signatures(sent, returned, policy, signer), signing)
    except MultisigError as error:
        return _verify_failed(record, said(error))
    return _signed(verified, signed, signing, context)


def _signed(
    verified: Record, signed: Psbt, signing: SigningPolicy, context: ReviewContext, by: str = ""
) -> Step:
    inspection = inspect(signed, signing.policy, network=context.network)
    signature, note = following.signed_as(
        verified.psbt_id, signed.to_bytes(), signing, inspection, context, **_who(by)
    )
    step = Step(replace(verified, signature=signature, reason=""), notes=(note,))
    return then_step(step, lambda r: ready_for_importer(r) or ended(r))


def _from_file(record: Record, sent: Psbt, returned: bytes, signing: SigningPolicy) -> Psbt:
    """S33: a file may go from signer to signer, and has the signatures of each. The platform takes each
    signer's own.
    """
    policy, fingerprint = signing.policy, signing.key.origin.fingerprint
    signed = accept_signatures(sent, Psbt.parse(returned), policy, None)
    if record.snapshot.imported is not None:
        return signed
    return accept_signatures(sent, signed_by(signed, policy, fingerprint), policy, fingerprint)


def _complete(signed: Psbt, signing: SigningPolicy) -> Psbt:
    missing = signer_progress(signed, signing.policy, signing.key.origin.fingerprint).missing
    if missing:
        raise NotFinalisable(f"the device left inputs unsigned: {', '.join(map(str, missing))}")
    return signed


def _verify_failed(record: Record, why: str) -> Step:
    reason = f"What the device returned was not used: {why}"
    failed = record.moved(ProposalMove.DEVICE_FAILED, approval=None, reason=reason)
    notice = Notify(record.psbt_id, Level.ALARM, reason)
    step = Step(failed, (notice,), (Note("verify-failed", record.psbt_id, {"why": why}),))
    return then_step(step, ended)


def device_failed(record: Record, event: events.NoSignature, _around: ReviewContext) -> Step:
    facts = {"asked": event.asked, "code": event.code, "sentence": event.sentence}
    if not event.asked:
        waiting = record.moved(ProposalMove.DEVICE_NOT_READY, reason=event.sentence)
        return then_step(Step(waiting, notes=(Note("device-not-ready", record.psbt_id, facts),)), ended)
    interrupted = record.moved(ProposalMove.DEVICE_FAILED, approval=None, reason=event.sentence)
    notice = Notify(record.psbt_id, Level.ATTENTION, event.sentence)
    return then_step(Step(interrupted, (notice,), (Note("interrupted", record.psbt_id, facts),)), ended)


# The platform's code for "no longer pending, or replaced"; the next poll has its outcome.
NO_LONGER_PENDING = "STATE_CONFLICT"

# About the key, not the proposal: our keys are read again at once.
KEY_REVOKED = "KEY_REVOKED"

# States that a poll may have reached while our submission was under way.
OVERTAKEN = OVER | {State.BROADCAST, State.CONFIRMED}
# Also declined by the person while it was kept, or shown by the platform as submitted.
OVERRULED = OVERTAKEN | {State.DECLINED, State.SUBMITTED}


def submit_started(record: Record, _event: events.SubmitStarted, _around: ReviewContext) -> Step:
    if record.signature is None:
        raise IllegalEvent("there is no signature to submit")
    if record.state is State.KEPT:
        return Step(record)
    started = record.moved(ProposalMove.SUBMIT)
    facts = {"idempotency_key": record.signature.idempotency_key}
    return Step(started, notes=(Note("submitting", record.psbt_id, facts),))


def submit_accepted(record: Record, event: events.SubmitAccepted, _around: ReviewContext) -> Step:
    if record.state in (State.SUBMITTED, State.BROADCAST, State.CONFIRMED):
        return _late(record, "accepted")
    said_no = record.state in (*OVER, State.DECLINED)
    if record.state in OVER and record.snapshot.status is not ProposalStatus.PENDING:
        notice = Notify(record.psbt_id, Level.ALARM, TAKEN_ALL_THE_SAME)
        late = replace(record, reason=f"{record.reason} {TAKEN_ALL_THE_SAME}")
        return Step(late, (notice,), _late(record, "accepted").notes)
    reason = f"{TAKEN_ALL_THE_SAME if said_no else ''} {foreign(event.sentence)}".strip()
    news = (Notify(record.psbt_id, Level.ALARM, reason),) if said_no else ()
    if event.sentence and event.status in COMPLETED:
        # Others may have completed it without our signature.
        out = record.moved(ProposalMove.WENT_OUT, reason=reason)
        facts = {"from": record.state.value, "platform": event.status.value, "txid": ""}
        return Step(out, news, (Note(out.state.value, record.psbt_id, facts),))
    accepted = record.moved(ProposalMove.ACCEPTED, reason=reason)
    counted = {"collected": event.collected, "required": event.required}
    return then_step(Step(accepted, news, (Note("submitted", record.psbt_id, counted),)), ended)


# The reason for what was declined, withdrawn or ended while it was being submitted.
TAKEN_ALL_THE_SAME = "The platform took your signature all the same: it may be paid."


def polled(record: Record, event: events.Polled, context: ReviewContext) -> Step:
    """As ``following.polled``. A declined or withdrawn proposal may be shown with our signature: the answer
    to its submission was lost.
    """
    step = following.polled(record, event, context)
    after = step.record
    unheard = after.state in (State.DECLINED, State.WITHDRAWN) and after.signature is not None
    if step == Step(record) or not unheard or after.snapshot.status is not ProposalStatus.PENDING:
        return step
    if own_signature(event.snapshot, context) is None:
        return step
    accepted = events.SubmitAccepted(after.snapshot.collected, after.snapshot.required)
    return then_step(step, lambda known: submit_accepted(known, accepted, context))


def submit_undelivered(record: Record, event: events.SubmitUndelivered, _around: ReviewContext) -> Step:
    if record.state in OVERRULED:
        return _late(record, "undelivered")
    if record.state is State.KEPT:
        return Step(record)
    waiting = record.moved(ProposalMove.UNDELIVERED, reason=event.sentence)
    note = Note("undelivered", record.psbt_id, {"sentence": event.sentence})
    return Step(waiting, notes=(note,))


def submit_kept(record: Record, event: events.SubmitKept, _around: ReviewContext) -> Step:
    """Notified and recorded once for each sentence."""
    if record.state in OVERRULED:
        return _late(record, event.code)
    reason = f"Signed and kept: {foreign(event.sentence)} {GOES_AGAIN}"
    kept = record.moved(ProposalMove.KEEP, reason=reason)
    if kept == record:
        return Step(record)
    facts = {"code": event.code, "sentence": event.sentence}
    notice = Notify(record.psbt_id, Level.ATTENTION, reason)
    return Step(kept, (notice,), (Note(State.KEPT.value, record.psbt_id, facts),))


GOES_AGAIN = (
    "signerd submits it again by itself, at least every 15 minutes for thirty days, unless the proposal ends "
    "or you decline it before."
)


def submit_turned_down(record: Record, event: events.SubmitTurnedDown, _around: ReviewContext) -> Step:
    if record.state in OVERRULED:
        return _late(record, event.code)
    reason = f"The platform did not take the signature: {foreign(event.sentence)}"
    is_over = event.code == NO_LONGER_PENDING
    move = ProposalMove.WITHDRAW if is_over else ProposalMove.TURNED_DOWN
    reason = f"{reason} {ANEW}" if is_over else reason
    refused = record.moved(move, reason=reason)
    facts = {"code": event.code, "sentence": event.sentence}
    notices: tuple[News, ...] = (Notify(record.psbt_id, Level.ATTENTION, reason),)
    if event.code == KEY_REVOKED:
        notices = (*notices, ReadKeys())
    return then_step(Step(refused, notices, (Note("turned-down", record.psbt_id, facts),)), ended)


def _late(record: Record, answer: str) -> Step:
    """A later poll was recorded already: the answer is noted and changes nothing."""
    return Step(record, notes=(Note("late-answer", record.psbt_id, {"answer": answer}),))


def decline_delivered(record: Record, event: events.DeclineDelivered, _around: ReviewContext) -> Step:
    if record.decline is None:
        raise IllegalEvent("nothing was declined")
    reason = f"{record.reason} {foreign(event.sentence)}".rstrip()
    delivered = replace(record, decline=replace(record.decline, delivered=True), reason=reason)
    notices = (Notify(record.psbt_id, Level.ATTENTION, reason),) if event.sentence else ()
    return Step(
        delivered, notices, (Note("decline-delivered", record.psbt_id, {"sentence": event.sentence}),)
    )


def ready_for_importer(record: Record) -> Step | None:
    """The step for an imported PSBT, which is not submitted but ready for its importer. None for a
    proposal.
    """
    if record.snapshot.imported is None:
        return None
    ready = record.moved(ProposalMove.HAND_OVER)
    facts = {"app": record.snapshot.imported.app_id or "", "to": record.snapshot.imported.by}
    return Step(ready, notes=(Note(State.HANDED_OVER.value, record.psbt_id, facts),))


def taken_back(record: Record, _event: events.TakenBack, _around: ReviewContext) -> Step:
    """The importer withdraws it. Raises IllegalEvent where it is decided, or a device is being asked."""
    if record.snapshot.imported is None or record.state not in UNDECIDED:
        raise IllegalEvent(f"what is {record.state} cannot be taken back")
    by = record.snapshot.imported.by
    reason = f"{by[0].upper()}{by[1:]} took it back."
    gone = record.moved(ProposalMove.WITHDRAW, approval=None, reason=reason)
    return Step(gone, notes=(Note("taken-back", record.psbt_id),))


def imported_again(record: Record, event: events.ImportedAgain, context: ReviewContext) -> Step:
    """S33: the signatures of another copy are kept beside those that came first, in whatever state it is.

    Raises RefusedByChecks where one does not verify, or nothing is there to verify it by.
    """
    signing = signing_of(record.snapshot, context)
    if signing is None:
        raise RefusedByChecks("the signatures in this copy cannot be verified: its vault is not pinned here")
    try:
        kept = psbt_of(record.snapshot.psbt)
        psbt = accept_signatures(kept, Psbt.parse(event.psbt), signing.policy, None).to_bytes()
        # A PSBT that is too large with them cannot be read again.
        Psbt.parse(psbt)
    except MultisigError as error:
        raise RefusedByChecks(f"the signatures in this copy are not kept: {said(error)}") from error
    if psbt == record.snapshot.psbt:
        return Step(record)
    facts = {"psbt_sha256": hashlib.sha256(psbt).hexdigest()}
    known = replace(record, snapshot=replace(record.snapshot, psbt=psbt))
    return Step(known, notes=(Note("imported-again", record.psbt_id, facts),))


_LAPSED = {
    State.WAITING_DEVICE: "You approved it, and no device signed it in time.",
    State.EXPORTED: f"No answer was imported in time. {STILL_OUT}",
}


def lapsed(record: Record, _event: events.Lapsed, _around: ReviewContext) -> Step:
    """Does nothing where it is decided, or while a device is being asked: it is checked again afterwards."""
    if record.snapshot.imported is None:
        return following.lapsed(record)
    if record.state not in (*UNDECIDED, State.EXPORTED):
        return Step(record)
    reason = _LAPSED.get(record.state, "It was not decided in time.")
    gone = record.moved(ProposalMove.EXPIRE, approval=None, reason=reason)
    return Step(gone, notes=(Note("lapsed", record.psbt_id),))


def decide(record: Record, event: events.ProposalEvent, context: ReviewContext) -> Step:
    """Apply one event.

    Raises:
        IllegalEvent, StaleApproval, RefusedByChecks, NeedsAcknowledgement, AnswerRefused: nothing has
        changed.
    """
    return HANDLERS[type(event)](record, event, context)


def restarted(record: Record, _event: events.Restarted, _around: ReviewContext) -> Step:
    if (record.state, ProposalMove.RESTARTED) not in TABLE:
        return Step(record)
    state = advance(record.state, ProposalMove.RESTARTED)
    facts = {"from": record.state.value, "to": state.value}
    anew = replace(record, state=state)
    if state is State.INTERRUPTED:
        anew = replace(anew, approval=None, reason=MAY_BE_SIGNED)
    return then_step(Step(anew, notes=(Note("restarted", record.psbt_id, facts),)), ended)


HANDLERS: Mapping[type, Callable[[Record, Any, ReviewContext], Step]] = MappingProxyType(
    {
        events.Polled: polled,
        events.Reconsidered: following.reconsidered,
        events.Approved: approved,
        events.PersonDeclined: refused,
        events.DeviceFound: device_found,
        events.Exported: exported,
        events.AnswerImported: answered,
        events.DeviceReturned: device_returned,
        events.NoSignature: device_failed,
        events.SubmitStarted: submit_started,
        events.SubmitAccepted: submit_accepted,
        events.SubmitUndelivered: submit_undelivered,
        events.SubmitKept: submit_kept,
        events.SubmitTurnedDown: submit_turned_down,
        events.DeclineDelivered: decline_delivered,
        events.Restarted: restarted,
        events.Recalled: recalled,
        events.Replaced: following.replaced,
        events.TakenBack: taken_back,
        events.ImportedAgain: imported_again,
        events.Lapsed: lapsed,
    }
)
