"""Whatever happens, in whatever order: nothing is signed without the person's yes to exactly what
is signed.
"""

from dataclasses import replace
from functools import reduce

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import Psbt, verify_signatures
from signerd.core import events
from signerd.core.engine import decide
from signerd.core.following import IMPORTED_ENDS, is_settled, receive
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.values import Imported, Record, ReviewContext, Work, todo
from signerd.daemon.imported import signed_of
from signerd.errors import DecisionError
from tests.support.desk import VAULT, review_context, signed_by, snapshot_of, spend
from tests.support.examples import examples
from tests.support.wallets import ALICE, BOB, CAROL, Signer

HONEST = snapshot_of(spend())
SNAPSHOTS = (
    HONEST,
    replace(HONEST, description="other words"),
    replace(HONEST, amounts=(1,)),
    replace(HONEST, kind=TxType.FORWARD),
    replace(HONEST, replaces="p-0"),
    replace(HONEST, psbt=signed_by(BOB, HONEST), collected=1),
    snapshot_of(spend(fee=1_001)),
    snapshot_of(b"garbage!"),
)
AROUNDS = (
    review_context(),
    review_context(pin=None),
    review_context(claim=None),
    review_context(revoked="The platform says so."),
)
ANSWERS = (
    signed_by(ALICE, HONEST),
    signed_by(BOB, HONEST),
    HONEST.psbt,
    ALICE.sign(spend(fee=1_001)).to_bytes(),
)
# The same transaction, imported by an app: of the vault as above.
IMPORTED = replace(HONEST, imported=Imported("App", "app-1", 0), recipients=(), amounts=(), txid_expected="")
# As it goes from signer to signer: with the signatures of these.
COPIES = {
    frozenset(who): reduce(lambda psbt, one: one.sign(psbt), who, Psbt.parse(HONEST.psbt)).to_bytes()
    for who in ((), (BOB,), (CAROL,), (BOB, CAROL))
}
WHO = st.sampled_from([*COPIES])
DIGESTS = tuple(review(s, a).digest for s in (*SNAPSHOTS, IMPORTED) for a in AROUNDS)

SIMPLE = (
    events.Reconsidered(),
    events.PersonDeclined("no"),
    events.DeviceFound("d"),
    events.Exported(),
    events.NoSignature("locked", "Locked.", asked=False),
    events.NoSignature("disconnected", "Gone.", asked=True),
    events.SubmitStarted(),
    events.SubmitAccepted(1, 2),
    events.SubmitUndelivered("no answer"),
    events.SubmitKept("VAULT_FROZEN", "no"),
    events.Replaced("p-2"),
    events.SubmitTurnedDown("BAD_SIGNATURE", "no"),
    events.SubmitTurnedDown("STATE_CONFLICT", "no"),
    events.DeclineDelivered(),
    events.Restarted(),
    events.Recalled(),
    events.TakenBack(),
    events.Lapsed(),
)


# No way leads back to these from an export.
NOT_ASKED_YET = (State.RECEIVED, State.WAITING_PERSON, State.WAITING_DEVICE, State.SIGNING)


def decided(record: Record) -> tuple[object, ...]:
    return record.state, record.signature, record.exported


class Life(RuleBasedStateMachine):
    """One proposal under every event, a changing platform and a changing machine."""

    def __init__(self) -> None:
        super().__init__()
        self.context: ReviewContext = AROUNDS[0]
        self.signatures: set[bytes] = set()
        self.keys: set[str] = set()
        self.yes_to: set[str] = set()
        self.given_out: set[bytes] = set()

    @initialize(snapshot=st.sampled_from([*[HONEST] * 5, *SNAPSHOTS]))
    def arrive(self, snapshot: object) -> None:
        self.record: Record = receive(snapshot, self.context).record

    def apply(self, event: events.ProposalEvent) -> None:
        before = self.record
        try:
            step = decide(before, event, self.context)
        except DecisionError:
            assert self.record is before
            return
        self.record = step.record
        self.look_at(before)
        if before.state is not State.SIGNING and step.record.state is State.SIGNING:
            assert isinstance(event, events.DeviceFound)
            assert before.state is State.WAITING_DEVICE
        # A step without a note in the audit chain has changed neither state nor decision.
        if decided(step.record) != decided(before):
            assert step.notes

    def look_at(self, before: Record) -> None:
        record = self.record
        begins = (record.state, record.exported) != (before.state, before.exported)
        if begins and record.state in (State.SIGNING, State.EXPORTED) and record.signature is None:
            seen = review(record.snapshot, self.context)
            assert seen.allowed
            assert seen.digest in self.yes_to
        if record.state is State.SIGNING:
            assert record.exported is None
        if record.exported is not None:
            self.given_out.add(record.exported)
        if todo(record) is Work.SUBMIT:
            assert record.signature is not None
            self.signatures.add(record.signature.psbt)
            self.keys.add(record.signature.idempotency_key)

    @rule(context=st.sampled_from([*[AROUNDS[0]] * 5, *AROUNDS]))
    def machine_changes(self, context: ReviewContext) -> None:
        self.context = context

    # Ends are rare, for else hardly a run would come as far as a signature.
    @rule(status=st.sampled_from([*[ProposalStatus.PENDING] * 20, *ProposalStatus]))
    def platform_speaks_of_the_end(self, status: ProposalStatus) -> None:
        self.apply(events.Polled(replace(self.record.snapshot, status=status)))

    @rule(snapshot=st.sampled_from([*[HONEST] * 10, *SNAPSHOTS]))
    def platform_keeps_asking(self, snapshot: object) -> None:
        self.apply(events.Polled(snapshot))

    @rule(digest=st.sampled_from(DIGESTS))
    def person_approves_something(self, digest: str) -> None:
        self.yes_to.add(digest)
        self.apply(events.Approved(digest))

    @rule()
    def person_approves_what_is_shown(self) -> None:
        digest = review(self.record.snapshot, self.context).digest
        self.yes_to.add(digest)
        self.apply(events.Approved(digest))

    @rule()
    def all_goes_well_to_the_signature(self) -> None:
        self.person_approves_what_is_shown()
        self.apply(events.DeviceFound("d"))
        self.apply(events.DeviceReturned(ANSWERS[0]))

    @rule()
    def device_is_found(self) -> None:
        self.apply(events.DeviceFound("d"))

    @rule(answer=st.sampled_from(ANSWERS))
    def device_answers(self, answer: bytes) -> None:
        self.apply(events.DeviceReturned(answer))

    @rule()
    def all_goes_well_to_the_card(self) -> None:
        self.person_approves_what_is_shown()
        self.apply(events.Exported())

    @rule(answer=st.sampled_from(ANSWERS))
    def an_answer_is_brought(self, answer: bytes) -> None:
        self.apply(events.AnswerImported(answer))

    @rule(event=st.sampled_from(SIMPLE))
    def something_happens(self, event: events.ProposalEvent) -> None:
        self.apply(event)

    @invariant()
    def one_signature_under_one_key(self) -> None:
        assert len(self.signatures) <= 1
        assert len(self.keys) <= 1

    @invariant()
    def what_was_given_out_is_remembered_and_goes_to_no_device(self) -> None:
        assert len(self.given_out) <= 1
        if hasattr(self, "record") and self.record.exported is not None:
            assert self.given_out == {self.record.exported}
            assert self.record.state not in NOT_ASKED_YET
            assert not is_settled(self.record) or self.record.state in (*IMPORTED_ENDS, State.CONFIRMED)

    @invariant()
    def at_the_device_there_is_an_approval(self) -> None:
        if hasattr(self, "record") and self.record.state in (State.WAITING_DEVICE, State.SIGNING):
            assert self.record.approval is not None
            assert self.record.approval.digest in self.yes_to
            assert self.record.signature is None


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(20), stateful_step_count=40)


class ImportedLife(Life):
    """The same of what an app imported: the platform's word is nothing to it, and it is told nothing."""

    @initialize(who=WHO, later=st.sampled_from([*COPIES][::-1]), signs_first=st.sampled_from([True, False]))
    def arrive(self, who: frozenset[Signer], later: frozenset[Signer], *, signs_first: bool) -> None:  # type: ignore[override]
        self.record, self.came = receive(replace(IMPORTED, psbt=COPIES[who]), self.context).record, who
        self.another_copy_comes(later, signs_first=signs_first)

    @rule(who=WHO, signs_first=st.booleans())
    def another_copy_comes(self, who: frozenset[Signer], *, signs_first: bool) -> None:
        if signs_first:
            self.all_goes_well_to_the_signature()
        self.apply(events.ImportedAgain(COPIES[who]))
        # Without its vault no signature can be verified, and none is taken.
        self.came |= who if self.context.pin is not None else frozenset()

    @invariant()
    def what_came_with_any_copy_is_given_back_with_ours(self) -> None:
        """S33."""
        signed = signed_of(self.record) if hasattr(self, "record") else None
        if signed is not None:
            who = {one.fingerprint for one in (ALICE, *self.came)}
            assert all(set(one.valid.values()) == who for one in verify_signatures(signed, VAULT).inputs)

    @invariant()
    def the_platform_is_told_nothing(self) -> None:
        assert not hasattr(self, "record") or todo(self.record) in {None, Work.ASK_DEVICE}

    @rule(lapsed=st.booleans())
    def time_passes(self, *, lapsed: bool) -> None:
        self.context = replace(self.context, lapsed=lapsed)

    @invariant()
    def it_is_what_was_imported(self) -> None:
        if not hasattr(self, "record"):
            return
        assert replace(self.record.snapshot, psbt=IMPORTED.psbt) == IMPORTED
        # What is signed is handed over at once, and stays so.
        assert (self.record.state is State.HANDED_OVER) is (self.record.signature is not None)


TestImportedLife = ImportedLife.TestCase
TestImportedLife.settings = settings(max_examples=examples(20), stateful_step_count=40)
