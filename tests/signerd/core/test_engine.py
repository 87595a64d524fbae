"""One proposal from the platform to the chain and through every way in which it may go otherwise."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

import pytest

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import Psbt, sats
from signerd.core import events
from signerd.core.engine import TAKEN_ALL_THE_SAME, decide
from signerd.core.events import AskPerson, Level, News, Notify, Step
from signerd.core.following import is_settled, receive
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.todo import Work, todo
from signerd.core.values import Imported, Record, ReviewContext, SigningLimits, Snapshot
from signerd.errors import AnswerRefused, IllegalEvent, NeedsAcknowledgement, RefusedByChecks, StaleApproval
from tests.support.desk import review_context, signed_by, snapshot_of, spend
from tests.support.payments import neighbour_of
from tests.support.wallets import ALICE, BOB, MALLORY

HONEST = snapshot_of(spend())
AROUND = review_context()


def kinds(news: Iterable[News]) -> list[type]:
    return [type(one) for one in news]


def note_kinds(step: Step) -> list[str]:
    return [note.kind for note in step.notes]


def approval(snapshot: Snapshot = HONEST, context: ReviewContext = AROUND) -> events.Approved:
    return events.Approved(review(snapshot, context).digest)


def run(*steps: events.ProposalEvent, start: Record | None = None, context: ReviewContext = AROUND) -> Record:
    record = start or receive(HONEST, context).record
    for event in steps:
        record = decide(record, event, context).record
    return record


RETURNED = events.DeviceReturned(signed_by(ALICE, HONEST))
APPROVED = run(approval())
SIGNING = run(events.DeviceFound("trezor-1"), start=APPROVED)
SIGNED = run(RETURNED, start=SIGNING)
SUBMITTING = run(events.SubmitStarted(), start=SIGNED)
SUBMITTED = run(events.SubmitAccepted(1, 2), start=SUBMITTING)
EXPORTED = run(events.Exported("terminal"), start=APPROVED)
DECLINED = run(events.PersonDeclined("no"), start=EXPORTED)
ANSWERED = events.AnswerImported(RETURNED.psbt, "terminal")


def test_received_is_judged_and_asks_the_person() -> None:
    step = receive(HONEST, AROUND)
    assert step.record.state is State.WAITING_PERSON
    assert step.news == (AskPerson("p-1"),)
    assert note_kinds(step) == ["received", "judged"]


def test_a_refused_proposal_asks_no_one_and_says_why() -> None:
    step = receive(HONEST, review_context(pin=None))
    assert step.record.state is State.REFUSED
    assert kinds(step.news) == [Notify]
    assert "not pinned" in step.record.reason


def test_pinning_the_vault_brings_a_refused_proposal_back() -> None:
    refused = receive(HONEST, review_context(pin=None)).record
    assert decide(refused, events.Reconsidered(), AROUND).record.state is State.WAITING_PERSON


def test_judged_anew_as_before_asks_and_notes_nothing() -> None:
    waiting = receive(HONEST, AROUND).record
    assert decide(waiting, events.Reconsidered(), AROUND) == Step(waiting)
    refused = receive(HONEST, review_context(pin=None)).record
    assert decide(refused, events.Reconsidered(), review_context(pin=None)) == Step(refused)


def test_tighter_limits_refuse_what_waited() -> None:
    waiting = receive(HONEST, AROUND).record
    tighter = review_context(limits=replace(SigningLimits(), max_fee=sats(999)))
    assert decide(waiting, events.Reconsidered(), tighter).record.state is State.REFUSED


def test_the_whole_way() -> None:
    step = decide(receive(HONEST, AROUND).record, approval(), AROUND)
    assert todo(step.record) is Work.ASK_DEVICE
    step = decide(step.record, events.DeviceFound("trezor-1"), AROUND)
    assert (step.record.state, todo(step.record)) == (State.SIGNING, None)
    step = decide(step.record, RETURNED, AROUND)
    assert (step.record.state, todo(step.record)) == (State.SIGNED, Work.SUBMIT)
    assert Psbt.parse(step.record.signature.psbt).inputs[0].partial_signatures
    step = decide(step.record, events.SubmitStarted(), AROUND)
    step = decide(step.record, events.SubmitAccepted(2, 2), AROUND)
    assert step.record.state is State.SUBMITTED
    out = replace(HONEST, status=ProposalStatus.BROADCASTING, txid=HONEST.txid_expected)
    step = decide(step.record, events.Polled(out), AROUND)
    assert step.record.state is State.BROADCAST
    done = replace(out, status=ProposalStatus.CONFIRMED, confirmations=1)
    assert decide(step.record, events.Polled(done), AROUND).record.state is State.CONFIRMED


# --- approval -----------------------------------------------------------------------------------------------


def test_s24_an_approval_of_something_else_is_stale() -> None:
    with pytest.raises(StaleApproval):
        run(events.Approved("00" * 32))


def test_s24_what_changed_after_the_approval_is_asked_again() -> None:
    changed = decide(APPROVED, events.Polled(replace(HONEST, description="Invoice 8")), AROUND).record
    step = decide(changed, events.DeviceFound("trezor-1"), AROUND)
    assert step.record.state is State.WAITING_PERSON
    assert step.record.approval is None
    assert "approval-lapsed" in note_kinds(step)


@pytest.mark.parametrize(
    "changes",
    [{"vault_id": "vault-2"}, {"workspace_id": 2}, {"kind": TxType.FORWARD}],
    ids=["vault", "workspace", "kind"],
)
def test_s24_a_proposal_that_moves_elsewhere_is_quarantined_and_stays_where_it_was(
    changes: dict[str, object],
) -> None:
    step = decide(APPROVED, events.Polled(replace(HONEST, **changes)), AROUND)
    assert step.record.state is State.QUARANTINED
    assert step.record.approval is None
    assert step.record.snapshot == HONEST
    assert note_kinds(step) == ["altered"]
    after = decide(SIGNED, events.Polled(replace(HONEST, **changes)), AROUND).record
    assert (after.state, after.snapshot, after.signature) == (State.SIGNED, HONEST, SIGNED.signature)
    assert after.alarm


def test_s24_another_transaction_after_the_signature_alarms_once_and_is_not_followed() -> None:
    other = snapshot_of(spend(fee=1_001))
    first = decide(SUBMITTED, events.Polled(other), AROUND)
    assert first.record.state is State.SUBMITTED
    assert first.record.snapshot.psbt == HONEST.psbt
    assert kinds(first.news) == [Notify]
    again = decide(first.record, events.Polled(replace(other, collected=2)), AROUND)
    assert again.news == again.notes == ()
    gone = decide(again.record, events.Polled(replace(other, status=ProposalStatus.CANCELLED)), AROUND)
    assert gone.record.state is State.WITHDRAWN


def test_an_approval_of_what_is_refused_now_is_refused() -> None:
    waiting = receive(HONEST, AROUND).record
    changed = review_context(claim=None)
    with pytest.raises(RefusedByChecks, match="vault-unchanged"):
        decide(waiting, approval(context=changed), changed)


def test_s6_a_held_proposal_needs_the_warnings_name() -> None:
    paid = replace(neighbour_of(snapshot_of(spend(), "p-0")), outpoints=frozenset())
    context = review_context(neighbours=(paid,))
    waiting = receive(HONEST, context).record
    with pytest.raises(NeedsAcknowledgement, match="paid-twice"):
        decide(waiting, approval(context=context), context)
    named = replace(approval(context=context), acknowledged=frozenset({"paid-twice", "other"}))
    approved = decide(waiting, named, context).record
    assert approved.approval is not None
    assert approved.approval.acknowledged == {"paid-twice"}


def test_declining_tells_the_platform_once() -> None:
    step = decide(receive(HONEST, AROUND).record, events.PersonDeclined("wrong invoice"), AROUND)
    assert step.record.state is State.DECLINED
    assert todo(step.record) is Work.TELL_DECLINE
    delivered = decide(step.record, events.DeclineDelivered(), AROUND).record
    assert todo(delivered) is None


@pytest.mark.parametrize("record", [SIGNED, SUBMITTING], ids=lambda r: r.state)
def test_what_is_signed_can_be_declined_until_the_platform_has_it(record: Record) -> None:
    """In an outage nothing else stops it. It counts as signed, and an answer that was on its way is told."""
    step = decide(record, events.PersonDeclined("changed my mind"), AROUND)
    assert (step.record.state, step.record.signature) == (State.DECLINED, record.signature)
    assert todo(step.record) is Work.TELL_DECLINE
    assert "counts as signed" in step.record.reason
    taken = decide(step.record, events.SubmitAccepted(1, 2), AROUND)
    assert (taken.record.state, kinds(taken.news)) == (State.SUBMITTED, [Notify])


def test_what_the_platform_has_cannot_be_declined() -> None:
    with pytest.raises(IllegalEvent, match="already signed"):
        decide(SUBMITTED, events.PersonDeclined("changed my mind"), AROUND)


# --- the device ---------------------------------------------------------------------------------------------


def test_a_device_that_was_not_ready_keeps_the_approval() -> None:
    step = decide(SIGNING, events.NoSignature("locked", "The device is locked.", asked=False), AROUND)
    assert step.record.state is State.WAITING_DEVICE
    assert step.record.approval == APPROVED.approval


def test_a_refusal_at_the_device_asks_the_person_again() -> None:
    step = decide(SIGNING, events.NoSignature("refused-by-person", "Refused.", asked=True), AROUND)
    assert step.record.state is State.INTERRUPTED
    assert step.record.approval is None
    assert run(approval(), start=step.record).state is State.WAITING_DEVICE


BAD_ANSWERS = pytest.mark.parametrize(
    "returned",
    [
        pytest.param(HONEST.psbt, id="nothing signed"),
        pytest.param(ALICE.sign(Psbt.parse(HONEST.psbt), inputs=[0]).to_bytes(), id="one input signed"),
        pytest.param(signed_by(BOB, HONEST), id="another signer's"),
        pytest.param(signed_by(MALLORY, HONEST), id="a stranger's"),
        pytest.param(ALICE.sign(spend(fee=1_001)).to_bytes(), id="another transaction"),
        pytest.param(ALICE.sign(Psbt.parse(HONEST.psbt), sighash=0x83).to_bytes(), id="SIGHASH_SINGLE"),
        pytest.param(b"garbage", id="garbage"),
    ],
)


@BAD_ANSWERS
def test_s19_a_bad_answer_of_the_device_is_not_used(returned: bytes) -> None:
    step = decide(SIGNING, events.DeviceReturned(returned), AROUND)
    assert step.record.state is State.INTERRUPTED
    assert step.record.signature is None
    assert [one.level for one in step.news if isinstance(one, Notify)] == [Level.ALARM]


def test_s19_only_signatures_are_taken_from_the_device() -> None:
    theirs = signed_by(BOB, replace(HONEST, psbt=signed_by(ALICE, HONEST)))
    step = decide(SIGNING, events.DeviceReturned(theirs), AROUND)
    assert step.record.state is State.INTERRUPTED
    assert SIGNED.signature is not None
    stored = Psbt.parse(SIGNED.signature.psbt)
    assert all(len(item.partial_signatures) == 1 for item in stored.inputs)


def test_a_colleagues_signature_that_came_meanwhile_is_no_obstacle() -> None:
    with_bobs = replace(HONEST, psbt=signed_by(BOB, HONEST), collected=1)
    signing = run(events.Polled(with_bobs), start=SIGNING)
    assert run(RETURNED, start=signing).state is State.SIGNED


def test_the_platforms_word_waits_for_the_device() -> None:
    out = replace(HONEST, status=ProposalStatus.BROADCASTING)
    signing = run(events.Polled(out), start=SIGNING)
    assert signing.state is State.SIGNING
    after = decide(signing, RETURNED, AROUND)
    assert after.record.state is State.BROADCAST
    assert after.record.signature is not None
    assert todo(after.record) is None


# --- a device without a cable -------------------------------------------------------------------------------


def test_it_is_recorded_as_exported_before_it_is_given_out() -> None:
    step = decide(APPROVED, events.Exported("terminal"), AROUND)
    assert (step.record.state, step.record.exported) == (State.EXPORTED, HONEST.psbt)
    (note,) = step.notes
    assert (note.kind, note.facts["by"]) == ("exported", "terminal")
    assert note.facts["psbt_sha256"] == sha256(HONEST.psbt).hexdigest()
    assert todo(step.record) is None


@pytest.mark.parametrize(
    "record", [receive(HONEST, AROUND).record, SIGNING, SIGNED, SUBMITTED], ids=lambda r: r.state
)
def test_nothing_is_exported_without_an_approval_or_beside_a_device(record: Record) -> None:
    with pytest.raises(IllegalEvent, match="cannot take 'export'"):
        decide(record, events.Exported(), AROUND)


def test_s24_what_changed_after_the_approval_is_asked_again_instead_of_exported() -> None:
    changed = decide(APPROVED, events.Polled(replace(HONEST, description="Invoice 8")), AROUND).record
    step = decide(changed, events.Exported(), AROUND)
    assert (step.record.state, step.record.exported) == (State.WAITING_PERSON, None)


def test_exported_again_it_is_the_same_bytes_and_no_second_entry() -> None:
    with_bobs = replace(HONEST, psbt=signed_by(BOB, HONEST), collected=1)
    later = run(events.Polled(with_bobs), start=EXPORTED)
    step = decide(later, events.Exported(), AROUND)
    assert step == Step(later)


def test_exported_again_it_stays_here_where_a_check_refuses_it_now() -> None:
    with pytest.raises(StaleApproval):
        decide(EXPORTED, events.Exported(), review_context(claim=None))


def test_an_exported_proposal_goes_to_no_device_and_is_not_judged_anew() -> None:
    with pytest.raises(IllegalEvent):
        decide(EXPORTED, events.DeviceFound("trezor-1"), AROUND)
    for event in (events.Reconsidered(), events.Restarted()):
        assert decide(EXPORTED, event, review_context(pin=None)) == Step(EXPORTED)


def test_the_answer_is_verified_stored_and_submitted_as_a_devices() -> None:
    step = decide(EXPORTED, ANSWERED, AROUND)
    assert step.record.state is State.SIGNED
    assert step.record.signature == SIGNED.signature
    assert todo(step.record) is Work.SUBMIT
    assert note_kinds(step) == ["signed"]
    assert step.record.exported == HONEST.psbt


def test_s19_the_answer_is_compared_with_what_was_exported_and_not_with_what_the_platform_shows_now() -> None:
    with_bobs = replace(HONEST, psbt=signed_by(BOB, HONEST), collected=1)
    after = run(ANSWERED, start=run(events.Polled(with_bobs), start=EXPORTED))
    assert after.signature == SIGNED.signature


@BAD_ANSWERS
def test_s19_a_bad_answer_that_is_brought_changes_nothing(returned: bytes) -> None:
    with pytest.raises(AnswerRefused):
        decide(EXPORTED, events.AnswerImported(returned), AROUND)


@pytest.mark.parametrize("record", [APPROVED, SIGNING, SIGNED, DECLINED], ids=lambda r: r.state)
def test_an_answer_to_nothing_that_was_exported_is_not_taken(record: Record) -> None:
    with pytest.raises(IllegalEvent, match="cannot take 'answered'"):
        decide(record, ANSWERED, AROUND)


def test_s6_a_payment_that_was_signed_since_the_export_holds_its_answer_until_it_is_named() -> None:
    paid = replace(neighbour_of(snapshot_of(spend(), "p-0")), outpoints=frozenset())
    context = review_context(neighbours=(paid,))
    with pytest.raises(StaleApproval):
        decide(EXPORTED, ANSWERED, context)
    named = replace(approval(context=context), acknowledged=frozenset({"paid-twice"}))
    again = run(named, start=EXPORTED, context=context)
    assert again.state is State.EXPORTED
    assert run(ANSWERED, start=again, context=context).state is State.SIGNED


def test_s33_of_a_file_that_others_signed_too_our_own_signatures_are_taken_and_all_are_verified() -> None:
    """The platform takes from each signer their own."""
    ours = replace(HONEST, psbt=signed_by(ALICE, HONEST))
    both = decide(EXPORTED, events.AnswerImported(signed_by(BOB, ours)), AROUND).record
    assert both.signature == SIGNED.signature
    bad = BOB.sign(Psbt.parse(ours.psbt), sighash=0x02).to_bytes()
    with pytest.raises(AnswerRefused, match="is invalid"):
        decide(EXPORTED, events.AnswerImported(bad), AROUND)


def test_s33_a_copy_of_a_vault_that_is_not_pinned_any_more_is_refused() -> None:
    copy = events.ImportedAgain(signed_by(BOB, HONEST))
    with pytest.raises(RefusedByChecks, match="not pinned"):
        decide(EXPORTED, copy, review_context(pin=None))


def test_an_answer_for_a_vault_that_is_not_pinned_any_more_is_not_taken() -> None:
    with pytest.raises(StaleApproval):
        decide(EXPORTED, ANSWERED, review_context(pin=None))


def test_s6_declining_it_says_that_it_may_be_signed_and_forgets_nothing() -> None:
    step = decide(EXPORTED, events.PersonDeclined("no"), AROUND)
    assert (step.record.state, step.record.exported) == (State.DECLINED, HONEST.psbt)
    assert "may be signed" in step.record.reason
    assert todo(step.record) is Work.TELL_DECLINE


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (ProposalStatus.EXPIRED, State.EXPIRED),
        (ProposalStatus.CANCELLED, State.WITHDRAWN),
        (ProposalStatus.SIGNED, State.BROADCAST),
    ],
)
def test_s6_whatever_ends_it_it_stays_exported_and_unsettled(status: ProposalStatus, state: State) -> None:
    ended = run(events.Polled(replace(HONEST, status=status)), start=EXPORTED)
    assert (ended.state, ended.exported) == (state, HONEST.psbt)
    assert not is_settled(ended)
    with pytest.raises(IllegalEvent):
        decide(ended, ANSWERED, AROUND)


def test_s24_another_transaction_under_its_id_quarantines_it() -> None:
    step = decide(EXPORTED, events.Polled(snapshot_of(spend(fee=1_001))), AROUND)
    assert (step.record.state, step.record.exported) == (State.QUARANTINED, HONEST.psbt)


def test_what_an_app_imported_lapses_after_its_day_though_it_was_exported() -> None:
    app = replace(HONEST, imported=Imported("App", None, 0), recipients=(), amounts=(), txid_expected="")
    asked = receive(app, AROUND).record
    exported = run(approval(app), events.Exported(), start=asked)
    lapsed = run(events.Lapsed(), start=exported)
    assert (lapsed.state, lapsed.exported) == (State.EXPIRED, HONEST.psbt)
    assert "may be signed" in lapsed.reason
    assert run(ANSWERED, start=exported).state is State.HANDED_OVER


# --- delivery -----------------------------------------------------------------------------------------------


def test_a_proposal_that_ended_while_the_device_was_locked_is_not_asked_about_again() -> None:
    cancelled = run(events.Polled(replace(HONEST, status=ProposalStatus.CANCELLED)), start=SIGNING)
    assert cancelled.state is State.SIGNING
    locked = decide(cancelled, events.NoSignature("locked", "It is locked.", asked=False), AROUND)
    assert locked.record.state is State.WITHDRAWN
    assert locked.news == ()


def test_an_undelivered_signature_is_sent_again_as_it_is() -> None:
    step = decide(SUBMITTING, events.SubmitUndelivered("no answer"), AROUND)
    assert (todo(step.record), step.record.signature) == (Work.SUBMIT, SIGNED.signature)


def test_a_signature_that_the_platform_turns_down_is_kept_and_quarantined() -> None:
    step = decide(SUBMITTING, events.SubmitTurnedDown("BAD_SIGNATURE", "no"), AROUND)
    assert step.record.state is State.QUARANTINED
    assert step.record.signature == SIGNED.signature


REFUSED_NOW = events.SubmitKept("VAULT_FROZEN", "It is frozen.")
KEPT = run(REFUSED_NOW, start=SUBMITTING)


def test_a_signature_that_is_refused_for_now_is_kept_and_only_another_sentence_is_news() -> None:
    assert (KEPT.state, todo(KEPT)) == (State.KEPT, Work.SUBMIT)
    for nothing_new in (
        events.SubmitStarted(), REFUSED_NOW, events.SubmitUndelivered("no answer"), events.Restarted()
    ):  # fmt: skip
        assert decide(KEPT, nothing_new, AROUND) == Step(KEPT)
    step = decide(KEPT, events.SubmitKept("VAULT_FROZEN", "It is frozen again."), AROUND)
    assert (kinds(step.news), note_kinds(step)) == ([Notify], ["kept"])
    assert run(events.SubmitAccepted(1, 2), start=KEPT).state is State.SUBMITTED
    assert run(events.SubmitTurnedDown("KEY_REVOKED", "no"), start=KEPT).state is State.QUARANTINED
    ends = {"CANCELLED": State.WITHDRAWN, "REPLACED": State.SUPERSEDED, "SIGNED": State.BROADCAST}
    for word, after in ends.items():
        gone = run(events.Polled(replace(HONEST, status=ProposalStatus(word))), start=KEPT)
        assert (gone.state, todo(gone)) == (after, None)


def test_a_no_to_what_is_kept_stops_it_and_what_was_on_its_way_is_told() -> None:
    step = decide(KEPT, events.PersonDeclined("too dear"), AROUND)
    assert (step.record.state, todo(step.record)) == (State.DECLINED, Work.TELL_DECLINE)
    assert (step.record.signature, "counts as signed" in step.record.reason) == (SIGNED.signature, True)
    for late in (REFUSED_NOW, events.SubmitUndelivered("no"), events.SubmitTurnedDown("KEY_REVOKED", "no")):
        assert decide(step.record, late, AROUND).record == step.record
    taken = run(
        events.SubmitAccepted(2, 2), events.DeclineDelivered("It has your signature."), start=step.record
    )
    assert (taken.state, todo(taken)) == (State.SUBMITTED, None)
    assert taken.reason == f"{TAKEN_ALL_THE_SAME} 2 of 2 signatures are there. It has your signature."


@pytest.mark.parametrize("status", ["PENDING", "CANCELLED"])
@pytest.mark.parametrize(
    "said_no", [events.PersonDeclined("no"), events.Replaced("p-2")], ids=["declined", "replaced"]
)
def test_an_acceptance_after_a_no_is_told_where_the_person_looks(
    said_no: events.ProposalEvent, status: str
) -> None:
    """Its answer was on its way, or lost: then what the platform shows carries the signature."""
    over = replace(HONEST, status=ProposalStatus(status))
    gone = run(said_no, *([events.Polled(over)] if status != "PENDING" else []), start=KEPT)
    shown = replace(over, psbt=signed_by(ALICE, HONEST), collected=1)
    for heard in (events.SubmitAccepted(1, 2), events.Polled(shown))[: 2 if status == "PENDING" else 1]:
        step = decide(gone, heard, AROUND)
        assert TAKEN_ALL_THE_SAME in step.record.reason
        assert [one.level for one in step.news if isinstance(one, Notify)] == [Level.ALARM]
        assert step.record.state is (State.SUBMITTED if status == "PENDING" else State.WITHDRAWN)
        for late in (events.SubmitAccepted(1, 2), REFUSED_NOW, events.SubmitUndelivered("no")):
            assert decide(decide(step.record, late, AROUND).record, events.Restarted(), AROUND).notes == ()


def test_what_others_completed_without_the_signature_is_not_said_to_have_it() -> None:
    said = "The threshold was met without this signature; it was not recorded."
    for start in (SUBMITTING, KEPT):
        step = decide(start, events.SubmitAccepted(2, 2, said, ProposalStatus.SIGNED), AROUND)
        assert (step.record.state, note_kinds(step)) == (State.BROADCAST, ["broadcast"])
        assert said in step.record.reason
        ours = decide(SUBMITTING, events.SubmitAccepted(2, 2, status=ProposalStatus.SIGNED), AROUND)
    assert ours.record.state is State.SUBMITTED


def test_what_is_kept_or_followed_for_too_long_ends_and_stays_signed() -> None:
    assert run(events.Lapsed(), start=SIGNED).state is State.WITHDRAWN
    ended = run(events.Lapsed(), start=KEPT)
    assert (ended.state, ended.signature, todo(ended)) == (State.WITHDRAWN, SIGNED.signature, None)
    assert not is_settled(ended)
    step = decide(ended, events.Lapsed(), AROUND)
    assert (is_settled(step.record), kinds(step.news), note_kinds(step)) == (True, [Notify], ["let-go"])
    assert "counts as signed" in step.record.reason
    assert decide(step.record, events.Lapsed(), AROUND) == Step(step.record)
    out = run(events.Polled(replace(HONEST, status=ProposalStatus.BROADCASTING)), start=step.record)
    assert (out.state, is_settled(out)) == (State.BROADCAST, False)
    for living in (APPROVED, SIGNING, SUBMITTING, SUBMITTED, out):
        assert decide(living, events.Lapsed(), AROUND) == Step(living)


@pytest.mark.parametrize("status", ["EXPIRED", "REPLACED", "REJECTED"])
def test_an_answer_that_comes_once_what_ended_is_pending_again_is_taken(status: str) -> None:
    over = replace(HONEST, status=ProposalStatus(status))
    again = run(events.Polled(over), events.Polled(HONEST), start=SUBMITTING)
    assert again.snapshot.status is ProposalStatus.PENDING
    step = decide(again, events.SubmitAccepted(1, 2), AROUND)
    assert (step.record.state, kinds(step.news)) == (State.SUBMITTED, [Notify])
    assert TAKEN_ALL_THE_SAME in step.record.reason


def test_what_was_replaced_before_the_platform_had_it_is_not_submitted_any_more() -> None:
    for waits in (SIGNED, KEPT):
        step = decide(waits, events.Replaced("p-2"), AROUND)
        assert (step.record.state, kinds(step.news), note_kinds(step)) == (
            State.WITHDRAWN, [Notify], ["withdrawn"]
        )  # fmt: skip
    for there in (SUBMITTING, SUBMITTED, receive(HONEST, AROUND).record):
        assert decide(there, events.Replaced("p-2"), AROUND) == Step(there)


def test_a_proposal_that_was_replaced_or_ended_is_withdrawn_for_good_then_followed() -> None:
    """What replaced it may be rejected: then it is pending again, and nothing is submitted unasked."""
    gone = run(events.SubmitTurnedDown("STATE_CONFLICT", "It was replaced by p-2."), start=SUBMITTING)
    back = run(events.Polled(HONEST), events.Restarted(), start=gone)
    assert (back.state, todo(back)) == (State.WITHDRAWN, None)
    out = replace(HONEST, status=ProposalStatus.BROADCASTING)
    assert run(events.Polled(out), start=gone).state is State.BROADCAST


@pytest.mark.parametrize(
    "late",
    [
        events.SubmitAccepted(2, 2),
        events.SubmitUndelivered("no answer"),
        events.SubmitTurnedDown("STATE_CONFLICT", "gone"),
    ],
)
def test_a_late_answer_does_not_undo_the_platforms_later_word(late: events.ProposalEvent) -> None:
    out = run(events.Polled(replace(HONEST, status=ProposalStatus.BROADCASTING)), start=SUBMITTING)
    step = decide(out, late, AROUND)
    assert step.record == out
    assert note_kinds(step) == ["late-answer"]


# --- restarts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (APPROVED, State.WAITING_DEVICE),
        (EXPORTED, State.EXPORTED),
        (SIGNING, State.INTERRUPTED),
        (SIGNED, State.SIGNED),
        (SUBMITTING, State.SIGNED),
        (SUBMITTED, State.SUBMITTED),
    ],
    ids=lambda value: getattr(value, "state", value),
)
def test_a_restart_asks_again_only_where_the_device_may_have_been_asked(before: Record, after: State) -> None:
    step = decide(before, events.Restarted(), AROUND)
    assert step.record.state is after
    assert (step.record.approval is None) is (after is State.INTERRUPTED)
    assert step.record.signature == before.signature


# --- the platform's word ------------------------------------------------------------------------------------


def test_the_same_word_again_changes_nothing() -> None:
    waiting = receive(HONEST, AROUND).record
    step = decide(waiting, events.Polled(HONEST), AROUND)
    assert step == Step(waiting)


def test_a_colleagues_signature_does_not_ask_the_person_again() -> None:
    step = decide(
        receive(HONEST, AROUND).record,
        events.Polled(replace(HONEST, psbt=signed_by(BOB, HONEST), collected=1)),
        AROUND,
    )
    assert step.news == ()
    assert step.record.snapshot.collected == 1


def test_a_lie_that_comes_later_refuses_what_waited() -> None:
    step = decide(receive(HONEST, AROUND).record, events.Polled(replace(HONEST, amounts=(1,))), AROUND)
    assert step.record.state is State.REFUSED


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (ProposalStatus.SIGNED, State.BROADCAST),
        (ProposalStatus.STALLED, State.BROADCAST),
        (ProposalStatus.BROADCASTING, State.BROADCAST),
        (ProposalStatus.CONFIRMED, State.CONFIRMED),
        (ProposalStatus.REJECTED, State.WITHDRAWN),
        (ProposalStatus.CANCELLED, State.WITHDRAWN),
        (ProposalStatus.INVALIDATED, State.WITHDRAWN),
        (ProposalStatus.FAILED, State.WITHDRAWN),
        (ProposalStatus.EXPIRED, State.EXPIRED),
        (ProposalStatus.REPLACED, State.SUPERSEDED),
    ],
)
def test_an_end_that_the_platform_tells_closes_what_waited(status: ProposalStatus, state: State) -> None:
    step = decide(APPROVED, events.Polled(replace(HONEST, status=status)), AROUND)
    assert step.record.state is state
    assert todo(step.record) is None


def test_a_payment_that_is_called_proven_is_no_more_than_it_was() -> None:
    proven = {"status": ProposalStatus.PROVEN}
    assert run(events.Polled(replace(HONEST, **proven)), start=SUBMITTED).state is State.SUBMITTED
    asked = receive(replace(HONEST, kind=TxType.PROOF), AROUND).record
    whole = run(events.Polled(replace(asked.snapshot, **proven)), start=asked)
    assert (whole.state, is_settled(whole)) == (State.CONFIRMED, True)


def test_met_by_the_others_does_not_stop_a_signature_on_its_way() -> None:
    met = replace(HONEST, status=ProposalStatus.SIGNED)
    assert run(events.Polled(met), start=SIGNED).state is State.SIGNED
    assert run(events.Polled(met), start=SUBMITTED).state is State.SUBMITTED


def test_a_proposal_first_seen_at_its_end_is_not_asked_about() -> None:
    step = receive(replace(HONEST, status=ProposalStatus.CANCELLED), AROUND)
    assert step.record.state is State.WITHDRAWN
    assert step.news == ()
