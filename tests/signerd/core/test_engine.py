"""One proposal from the platform to the chain and through every way in which it may go otherwise.

That nothing is signed without the person's yes to exactly that is `test_engine_properties.py`'s; that what
was altered lapses or is set aside is the corpus's (`tests/attacks/test_imported.py`).
"""

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
from signerd.core.values import Imported, Record, ReviewContext, SigningLimits, Snapshot, Work, todo
from signerd.errors import AnswerRefused, IllegalEvent, NeedsAcknowledgement, RefusedByChecks, StaleApproval
from tests.support.desk import review_context, signed_by, snapshot_of, spend
from tests.support.payments import forward_of, forward_psbt, neighbour_of, with_profile
from tests.support.wallets import ALICE, BOB, MALLORY

HONEST = snapshot_of(spend())
AROUND, UNPINNED = review_context(), review_context(pin=None)
# The same payment, signed here before.
PAID_BEFORE = review_context(
    neighbours=(replace(neighbour_of(snapshot_of(spend(), "p-0")), outpoints=frozenset()),)
)


def levels(news: Iterable[News]) -> list[Level]:
    return [one.level for one in news if isinstance(one, Notify)]


def note_kinds(step: Step) -> list[str]:
    return [note.kind for note in step.notes]


def approval(snapshot: Snapshot = HONEST, context: ReviewContext = AROUND) -> events.Approved:
    return events.Approved(review(snapshot, context).digest)


def run(*steps: events.ProposalEvent, start: Record | None = None, context: ReviewContext = AROUND) -> Record:
    record = start or receive(HONEST, context).record
    for event in steps:
        record = decide(record, event, context).record
    return record


def says(status: str = "PENDING", **shown: object) -> events.Polled:
    return events.Polled(replace(HONEST, status=ProposalStatus(status), **shown))


RETURNED = events.DeviceReturned(signed_by(ALICE, HONEST))
ANSWERED = events.AnswerImported(RETURNED.psbt, "terminal")
WITH_BOBS = says(psbt=signed_by(BOB, HONEST), collected=1)
OTHER_WORDS = says(description="Invoice 8")
NO = events.PersonDeclined("no")
TAKEN = events.SubmitAccepted(1, 2)
LOST = events.SubmitUndelivered("no answer")
REFUSED_NOW = events.SubmitKept("VAULT_FROZEN", "It is frozen.")
TURNED_DOWN = events.SubmitTurnedDown("KEY_REVOKED", "no")
NO_LONGER_PENDING = events.SubmitTurnedDown("STATE_CONFLICT", "It was replaced by p-2.")
NOT_READY = events.NoSignature("locked", "The device is locked.", asked=False)
SAID_NO = events.NoSignature("refused-by-person", "Refused.", asked=True)

WAITING = receive(HONEST, AROUND).record
REFUSED = receive(HONEST, UNPINNED).record
APPROVED = run(approval())
SIGNING = run(events.DeviceFound("trezor-1"), start=APPROVED)
SIGNED = run(RETURNED, start=SIGNING)
SUBMITTING = run(events.SubmitStarted(), start=SIGNED)
SUBMITTED = run(TAKEN, start=SUBMITTING)
KEPT = run(REFUSED_NOW, start=SUBMITTING)
EXPORTED = run(events.Exported("terminal"), start=APPROVED)
DECLINED = run(NO, start=EXPORTED)
CANCELLED_AT_DEVICE = run(says("CANCELLED"), start=SIGNING)


def test_received_it_is_judged_and_the_person_asked_or_told_why_not() -> None:
    step = receive(HONEST, AROUND)
    assert (step.record.state, step.news, note_kinds(step)) == (
        State.WAITING_PERSON, (AskPerson("p-1"),), ["received", "judged"]
    )  # fmt: skip
    refused = receive(HONEST, UNPINNED)
    assert (refused.record.state, len(refused.news)) == (State.REFUSED, 1)
    assert "not pinned" in refused.record.reason
    over = receive(replace(HONEST, status=ProposalStatus.CANCELLED), AROUND)
    assert (over.record.state, over.news) == (State.WITHDRAWN, ())


def test_of_what_the_device_returned_only_our_signatures_are_stored() -> None:
    assert SIGNED.signature is not None
    assert all(len(item.partial_signatures) == 1 for item in Psbt.parse(SIGNED.signature.psbt).inputs)


# Where it stands, what happens, and: where it stands then, what is to be done, and the last step's notes.
WAYS = {
    "pinned since": (REFUSED, [events.Reconsidered()], State.WAITING_PERSON, None, "judged"),
    "a lie that comes later": (WAITING, [says(amounts=(1,))], State.REFUSED, None, "judged"),
    "a colleague signs": (WAITING, [WITH_BOBS], State.WAITING_PERSON, None, ""),
    "declined": (WAITING, [NO], State.DECLINED, Work.TELL_DECLINE, "declined"),
    "declined, told": (WAITING, [NO, events.DeclineDelivered()], State.DECLINED, None, "decline-delivered"),
    "altered after the yes": (
        APPROVED, [OTHER_WORDS, events.DeviceFound("d")], State.WAITING_PERSON, None, "approval-lapsed judged"
    ),
    "altered before the export": (
        APPROVED, [OTHER_WORDS, events.Exported()], State.WAITING_PERSON, None, "approval-lapsed judged"
    ),
    "a device not ready": (SIGNING, [NOT_READY], State.WAITING_DEVICE, Work.ASK_DEVICE, "device-not-ready"),
    "a no at the device": (SIGNING, [SAID_NO], State.INTERRUPTED, None, "interrupted"),
    "approved again": (SIGNING, [SAID_NO, approval()], State.WAITING_DEVICE, Work.ASK_DEVICE, "approved"),
    "a colleague signs meanwhile": (SIGNING, [WITH_BOBS, RETURNED], State.SIGNED, Work.SUBMIT, "signed"),
    "the platform's word waits for the device": (SIGNING, [says("BROADCASTING")], State.SIGNING, None, ""),
    "and is heard then": (
        SIGNING, [says("BROADCASTING"), RETURNED], State.BROADCAST, None, "signed broadcast"
    ),
    "cancelled while the device was locked": (
        CANCELLED_AT_DEVICE, [NOT_READY], State.WITHDRAWN, None, "device-not-ready withdrawn"
    ),
    "exported": (APPROVED, [events.Exported()], State.EXPORTED, None, "exported"),
    "answered": (EXPORTED, [ANSWERED], State.SIGNED, Work.SUBMIT, "signed"),
    # What was exported counts, and not what the platform shows now.
    "answered beside a colleague": (EXPORTED, [WITH_BOBS, ANSWERED], State.SIGNED, Work.SUBMIT, "signed"),
    "exported and declined": (EXPORTED, [NO], State.DECLINED, Work.TELL_DECLINE, "declined"),
    "exported and expired": (EXPORTED, [says("EXPIRED")], State.EXPIRED, None, "expired"),
    "exported and cancelled": (EXPORTED, [says("CANCELLED")], State.WITHDRAWN, None, "withdrawn"),
    "exported and completed by others": (EXPORTED, [says("SIGNED")], State.BROADCAST, None, "broadcast"),
    "exported, then another transaction": (
        EXPORTED, [events.Polled(snapshot_of(spend(fee=1_001)))], State.QUARANTINED, None, "altered"
    ),
    "undelivered": (SUBMITTING, [LOST], State.SIGNED, Work.SUBMIT, "undelivered"),
    "turned down": (SUBMITTING, [TURNED_DOWN], State.QUARANTINED, None, "turned-down"),
    # What replaced it may be rejected: then it is pending again, and nothing is submitted unasked.
    "replaced, and pending again": (
        SUBMITTING, [NO_LONGER_PENDING, says(), events.Restarted()], State.WITHDRAWN, None, ""
    ),
    "replaced, and out": (
        SUBMITTING, [NO_LONGER_PENDING, says("BROADCASTING")], State.BROADCAST, None, "broadcast"
    ),
    "signed, and replaced": (SIGNED, [events.Replaced("p-2")], State.WITHDRAWN, None, "withdrawn"),
    "kept, and replaced": (KEPT, [events.Replaced("p-2")], State.WITHDRAWN, None, "withdrawn"),
    "signed for too long": (SIGNED, [events.Lapsed()], State.WITHDRAWN, None, "withdrawn"),
    "refused for now": (SUBMITTING, [REFUSED_NOW], State.KEPT, Work.SUBMIT, "kept"),
    "kept, and taken": (KEPT, [TAKEN], State.SUBMITTED, None, "submitted"),
    "kept, and turned down": (KEPT, [TURNED_DOWN], State.QUARANTINED, None, "turned-down"),
    "kept, and cancelled": (KEPT, [says("CANCELLED")], State.WITHDRAWN, None, "withdrawn"),
    "kept, and replaced there": (KEPT, [says("REPLACED")], State.SUPERSEDED, None, "superseded"),
    "kept, and completed by others": (KEPT, [says("SIGNED")], State.BROADCAST, None, "broadcast"),
    # In an outage nothing else stops it.
    "signed, and declined": (SIGNED, [NO], State.DECLINED, Work.TELL_DECLINE, "declined"),
    "submitting, and declined": (SUBMITTING, [NO], State.DECLINED, Work.TELL_DECLINE, "declined"),
    "kept, and declined": (KEPT, [NO], State.DECLINED, Work.TELL_DECLINE, "declined"),
    "met by others, and signed": (SIGNED, [says("SIGNED")], State.SIGNED, Work.SUBMIT, ""),
    "met by others, and submitted": (SUBMITTED, [says("SIGNED")], State.SUBMITTED, None, ""),
    "a payment that is called proven": (SUBMITTED, [says("PROVEN")], State.SUBMITTED, None, ""),
    "out": (SUBMITTED, [says("BROADCASTING")], State.BROADCAST, None, "broadcast"),
    "confirmed": (SUBMITTED, [says("CONFIRMED", confirmations=1)], State.CONFIRMED, None, "confirmed"),
    # An end that the platform tells closes what waited.
    "approved, and stalled there": (APPROVED, [says("STALLED")], State.BROADCAST, None, "broadcast"),
    **{
        f"approved, and {status} there": (APPROVED, [says(status)], State.WITHDRAWN, None, "withdrawn")
        for status in ("REJECTED", "INVALIDATED", "FAILED")
    },
    # A restart asks again only where the device may have been asked.
    "approved, restarted": (APPROVED, [events.Restarted()], State.WAITING_DEVICE, Work.ASK_DEVICE, ""),
    "exported, restarted": (EXPORTED, [events.Restarted()], State.EXPORTED, None, ""),
    "signing, restarted": (SIGNING, [events.Restarted()], State.INTERRUPTED, None, "restarted"),
    "submitting, restarted": (SUBMITTING, [events.Restarted()], State.SIGNED, Work.SUBMIT, "restarted"),
}  # fmt: skip


@pytest.mark.parametrize(("start", "happens", "state", "work", "notes"), WAYS.values(), ids=WAYS)
def test_what_leads_where(
    start: Record, happens: list[events.ProposalEvent], state: State, work: Work | None, notes: str
) -> None:
    step = decide(run(*happens[:-1], start=start), happens[-1], AROUND)
    found = step.record
    assert (found.state, todo(found), note_kinds(step)) == (state, work, notes.split())
    if not notes and isinstance(happens[-1], events.Polled):
        assert found.snapshot == happens[-1].snapshot
    # A yes stands only where it still counts, and what may be signed is never forgotten.
    if state in (State.WAITING_PERSON, State.REFUSED, State.INTERRUPTED, State.DECLINED):
        assert found.approval is None
    assert start.signature in (None, found.signature)
    assert start.exported in (None, found.exported)
    assert not ((found.signature or found.exported) and is_settled(found))
    if state is State.DECLINED:
        assert ("may be signed" in found.reason) is (start.exported is not None)
        assert ("counts as signed" in found.reason) is bool(start.exported or start.signature)


OUT = run(says("BROADCASTING"), start=SUBMITTING)
NOTHING = {
    "the same word": (WAITING, [says()]),
    "judged as before": (WAITING, [events.Reconsidered()]),
    # It is not judged anew, whatever is so now, nor exported a second time with a second entry.
    "exported": (EXPORTED, [events.Reconsidered(), events.Restarted(), events.Exported()]),
    "kept": (KEPT, [events.SubmitStarted(), REFUSED_NOW, LOST, events.Restarted()]),
    "lapsed": (SIGNING, [events.Lapsed()]),
    "there, and replaced or lapsed": (SUBMITTING, [events.Replaced("p-2"), events.Lapsed()]),
    "taken, and replaced or lapsed": (SUBMITTED, [events.Replaced("p-2"), events.Lapsed()]),
    "waits, and replaced": (WAITING, [events.Replaced("p-2")]),
}


@pytest.mark.parametrize(("record", "happens"), NOTHING.values(), ids=NOTHING)
def test_what_changes_and_notes_nothing(record: Record, happens: list[events.ProposalEvent]) -> None:
    for event in happens:
        assert decide(record, event, AROUND) == Step(record)


@pytest.mark.parametrize("record", [REFUSED, EXPORTED], ids=["refused", "exported"])
def test_judged_anew_as_before_asks_and_notes_nothing(record: Record) -> None:
    assert decide(record, events.Reconsidered(), UNPINNED) == Step(record)


@pytest.mark.parametrize("late", [events.SubmitAccepted(2, 2), LOST, NO_LONGER_PENDING, REFUSED_NOW])
def test_a_late_answer_does_not_undo_the_platforms_later_word(late: events.ProposalEvent) -> None:
    step = decide(OUT, late, AROUND)
    assert (step.record, note_kinds(step)) == (OUT, ["late-answer"])


CHANGED = review_context(claim=None)
ILLEGAL = {
    "a yes to something else": (WAITING, events.Approved("00" * 32), AROUND, StaleApproval, "approved"),
    "a yes to what is refused now": (
        WAITING, approval(context=CHANGED), CHANGED, RefusedByChecks, "vault-unchanged"
    ),
    "a warning that is not named": (
        WAITING, approval(context=PAID_BEFORE), PAID_BEFORE, NeedsAcknowledgement, "paid-twice"
    ),
    "a no to what the platform has": (SUBMITTED, NO, AROUND, IllegalEvent, "already signed"),
    "exported without a yes": (WAITING, events.Exported(), AROUND, IllegalEvent, "cannot take 'export'"),
    "exported beside a device": (SIGNING, events.Exported(), AROUND, IllegalEvent, "cannot take 'export'"),
    "exported once it is signed": (SIGNED, events.Exported(), AROUND, IllegalEvent, "cannot take 'export'"),
    "exported again, refused now": (EXPORTED, events.Exported(), CHANGED, StaleApproval, "what you approved"),
    "a device beside the export": (EXPORTED, events.DeviceFound("d"), AROUND, IllegalEvent, "cannot take"),
    "an answer to no export": (APPROVED, ANSWERED, AROUND, IllegalEvent, "cannot take 'answered'"),
    "an answer beside a device": (SIGNING, ANSWERED, AROUND, IllegalEvent, "cannot take 'answered'"),
    "an answer to what was declined": (DECLINED, ANSWERED, AROUND, IllegalEvent, "cannot take 'answered'"),
    "an answer, and not pinned any more": (EXPORTED, ANSWERED, UNPINNED, StaleApproval, "what you approved"),
    "a copy, and not pinned any more": (
        EXPORTED, events.ImportedAgain(signed_by(BOB, HONEST)), UNPINNED, RefusedByChecks, "not pinned"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("record", "event", "context", "error", "words"), ILLEGAL.values(), ids=ILLEGAL)
def test_what_is_refused(
    record: Record, event: events.ProposalEvent, context: ReviewContext, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        decide(record, event, context)


def test_tighter_limits_refuse_what_waited() -> None:
    tighter = review_context(limits=replace(SigningLimits(), max_fee=sats(999)))
    assert decide(WAITING, events.Reconsidered(), tighter).record.state is State.REFUSED


@pytest.mark.parametrize(
    "changes",
    [{"vault_id": "vault-2"}, {"workspace_id": 2}, {"kind": TxType.FORWARD}],
    ids=["vault", "workspace", "kind"],
)
def test_s24_a_proposal_that_moves_elsewhere_is_quarantined_and_stays_where_it_was(
    changes: dict[str, object],
) -> None:
    step = decide(APPROVED, says(**changes), AROUND)
    assert (step.record.state, step.record.approval, step.record.snapshot) == (
        State.QUARANTINED,
        None,
        HONEST,
    )
    assert note_kinds(step) == ["altered"]
    after = run(says(**changes), start=SIGNED)
    assert (after.state, after.snapshot, after.signature) == (State.SIGNED, HONEST, SIGNED.signature)
    assert after.alarm


def test_s24_another_transaction_after_the_signature_alarms_once_and_is_not_followed() -> None:
    other = snapshot_of(spend(fee=1_001))
    first = decide(SUBMITTED, events.Polled(other), AROUND)
    assert (first.record.state, first.record.snapshot.psbt) == (State.SUBMITTED, HONEST.psbt)
    assert levels(first.news) == [Level.ALARM]
    again = decide(first.record, events.Polled(replace(other, collected=2)), AROUND)
    assert again.news == again.notes == ()
    gone = decide(again.record, events.Polled(replace(other, status=ProposalStatus.CANCELLED)), AROUND)
    assert gone.record.state is State.WITHDRAWN


def test_s6_only_warnings_that_are_there_are_named() -> None:
    named = replace(approval(context=PAID_BEFORE), acknowledged=frozenset({"paid-twice", "other"}))
    approved = decide(WAITING, named, PAID_BEFORE).record
    assert approved.approval is not None
    assert approved.approval.acknowledged == {"paid-twice"}


BAD_ANSWERS = {
    "nothing signed": HONEST.psbt,
    "one input signed": ALICE.sign(Psbt.parse(HONEST.psbt), inputs=[0]).to_bytes(),
    "another signer's": signed_by(BOB, HONEST),
    "a stranger's": signed_by(MALLORY, HONEST),
    "another transaction": ALICE.sign(spend(fee=1_001)).to_bytes(),
    "SIGHASH_SINGLE": ALICE.sign(Psbt.parse(HONEST.psbt), sighash=0x83).to_bytes(),
    "garbage": b"garbage",
}


@pytest.mark.parametrize("returned", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_s19_a_bad_answer_of_the_device_is_not_used_and_one_that_is_brought_changes_nothing(
    returned: bytes,
) -> None:
    step = decide(SIGNING, events.DeviceReturned(returned), AROUND)
    assert (step.record.state, step.record.signature) == (State.INTERRUPTED, None)
    assert levels(step.news) == [Level.ALARM]
    with pytest.raises(AnswerRefused):
        decide(EXPORTED, events.AnswerImported(returned), AROUND)


def test_s16_what_a_device_returns_of_a_vault_that_is_not_pinned_any_more_is_not_used() -> None:
    assert run(RETURNED, start=SIGNING, context=UNPINNED).state is State.INTERRUPTED


def test_s33_of_what_others_signed_too_a_device_may_give_nothing_and_a_file_our_own() -> None:
    """The platform takes from each signer their own; all are verified."""
    ours = replace(HONEST, psbt=signed_by(ALICE, HONEST))
    both = signed_by(BOB, ours)
    assert run(events.DeviceReturned(both), start=SIGNING).state is State.INTERRUPTED
    assert run(events.AnswerImported(both), start=EXPORTED).signature == SIGNED.signature
    bad = BOB.sign(Psbt.parse(ours.psbt), sighash=0x02).to_bytes()
    with pytest.raises(AnswerRefused, match="is invalid"):
        decide(EXPORTED, events.AnswerImported(bad), AROUND)


def test_an_export_is_recorded_before_it_is_given_out() -> None:
    (note,) = decide(APPROVED, events.Exported("terminal"), AROUND).notes
    assert note.facts["by"] == "terminal"
    assert note.facts["psbt_sha256"] == sha256(HONEST.psbt).hexdigest()
    assert EXPORTED.exported == HONEST.psbt


def test_s6_a_payment_that_was_signed_since_the_export_holds_its_answer_until_it_is_named() -> None:
    with pytest.raises(StaleApproval):
        decide(EXPORTED, ANSWERED, PAID_BEFORE)
    named = replace(approval(context=PAID_BEFORE), acknowledged=frozenset({"paid-twice"}))
    again = run(named, start=EXPORTED, context=PAID_BEFORE)
    assert again.state is State.EXPORTED
    assert run(ANSWERED, start=again, context=PAID_BEFORE).state is State.SIGNED


def test_what_an_app_imported_lapses_after_its_day_though_it_was_exported() -> None:
    app = replace(HONEST, imported=Imported("App", None, 0), recipients=(), amounts=(), txid_expected="")
    exported = run(approval(app), events.Exported(), start=receive(app, AROUND).record)
    lapsed = run(events.Lapsed(), start=exported)
    assert (lapsed.state, lapsed.exported) == (State.EXPIRED, HONEST.psbt)
    assert "may be signed" in lapsed.reason
    assert run(ANSWERED, start=exported).state is State.HANDED_OVER


def test_only_another_sentence_of_what_is_refused_for_now_is_news() -> None:
    step = decide(KEPT, events.SubmitKept("VAULT_FROZEN", "It is frozen again."), AROUND)
    assert (levels(step.news), note_kinds(step)) == ([Level.ATTENTION], ["kept"])


def test_a_no_to_what_is_kept_stops_it_and_what_was_on_its_way_is_told() -> None:
    declined = run(NO, start=KEPT)
    for late in (REFUSED_NOW, LOST, TURNED_DOWN):
        assert decide(declined, late, AROUND).record == declined
    taken = run(
        events.SubmitAccepted(2, 2), events.DeclineDelivered("It has your signature."), start=declined
    )
    assert (taken.state, todo(taken)) == (State.SUBMITTED, None)
    assert taken.reason == f"{TAKEN_ALL_THE_SAME} It has your signature."


@pytest.mark.parametrize("status", ["PENDING", "CANCELLED"])
@pytest.mark.parametrize("said_no", [NO, events.Replaced("p-2")], ids=["declined", "replaced"])
def test_an_acceptance_after_a_no_is_told_where_the_person_looks(
    said_no: events.ProposalEvent, status: str
) -> None:
    """Its answer was on its way, or lost: then what the platform shows carries the signature."""
    over = replace(HONEST, status=ProposalStatus(status))
    gone = run(said_no, *([events.Polled(over)] if status != "PENDING" else []), start=KEPT)
    shown = replace(over, psbt=signed_by(ALICE, HONEST), collected=1)
    for heard in (TAKEN, events.Polled(shown))[: 2 if status == "PENDING" else 1]:
        step = decide(gone, heard, AROUND)
        assert TAKEN_ALL_THE_SAME in step.record.reason
        assert levels(step.news) == [Level.ALARM]
        assert step.record.state is (State.SUBMITTED if status == "PENDING" else State.WITHDRAWN)
        for late in (TAKEN, REFUSED_NOW, LOST):
            assert decide(decide(step.record, late, AROUND).record, events.Restarted(), AROUND).notes == ()


def test_what_others_completed_without_the_signature_is_not_said_to_have_it() -> None:
    said = "The threshold was met without this signature; it was not recorded."
    for start in (SUBMITTING, KEPT):
        step = decide(start, events.SubmitAccepted(2, 2, said, ProposalStatus.SIGNED), AROUND)
        assert (step.record.state, note_kinds(step)) == (State.BROADCAST, ["broadcast"])
        assert said in step.record.reason
    ours = run(events.SubmitAccepted(2, 2, status=ProposalStatus.SIGNED), start=SUBMITTING)
    assert ours.state is State.SUBMITTED


def test_what_is_kept_or_followed_for_too_long_ends_and_stays_signed() -> None:
    ended = run(events.Lapsed(), start=KEPT)
    assert (ended.state, is_settled(ended)) == (State.WITHDRAWN, False)
    step = decide(ended, events.Lapsed(), AROUND)
    assert (is_settled(step.record), len(step.news), note_kinds(step)) == (True, 1, ["let-go"])
    assert "counts as signed" in step.record.reason
    assert decide(step.record, events.Lapsed(), AROUND) == Step(step.record)
    out = run(says("BROADCASTING"), events.Lapsed(), start=step.record)
    assert (out.state, is_settled(out)) == (State.BROADCAST, False)


@pytest.mark.parametrize("status", ["EXPIRED", "REPLACED", "REJECTED"])
def test_an_answer_that_comes_once_what_ended_is_pending_again_is_taken(status: str) -> None:
    again = run(says(status), says(), start=SUBMITTING)
    assert again.snapshot.status is ProposalStatus.PENDING
    step = decide(again, TAKEN, AROUND)
    assert (step.record.state, levels(step.news)) == (State.SUBMITTED, [Level.ALARM])
    assert TAKEN_ALL_THE_SAME in step.record.reason


def test_a_forward_pays_nothing_that_counts_and_another_profiles_signature_is_not_used() -> None:
    around, forward = with_profile(), forward_of(forward_psbt())
    step = decide(receive(forward, around).record, approval(forward, around), around)
    facts = step.notes[0].facts
    assert (facts["payments"], [amount for _script, amount in facts["forwarded"]]) == ([], [60_000])
    signing = run(events.DeviceFound("d"), start=step.record, context=around)
    theirs = BOB.sign(forward_psbt(profile=BOB.profile(around.network))).to_bytes()
    for returned, state in ((theirs, State.INTERRUPTED), (signed_by(ALICE, forward), State.SIGNED)):
        assert run(events.DeviceReturned(returned), start=signing, context=around).state is state


def test_a_whole_proof_is_an_end() -> None:
    asked = receive(replace(HONEST, kind=TxType.PROOF), AROUND).record
    whole = run(events.Polled(replace(asked.snapshot, status=ProposalStatus.PROVEN)), start=asked)
    assert (whole.state, is_settled(whole)) == (State.CONFIRMED, True)
