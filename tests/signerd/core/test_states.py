"""The table of a proposal's life: what leads where, and what leads nowhere; what a restored journal has
forgotten; the chain of decisions.
"""

from dataclasses import replace
from itertools import product

import pytest

from custody.schemas.proposals import ProposalStatus
from multisig import Psbt
from signerd.core import events
from signerd.core.audit import GENESIS, Entry, Note, first_fault, link
from signerd.core.engine import decide
from signerd.core.events import Step
from signerd.core.following import REASON, own_signature, receive
from signerd.core.states import TABLE, ProposalMove, State, advance
from signerd.core.values import Record, Snapshot
from signerd.errors import IllegalEvent
from tests.support.desk import review_context, signed_by, snapshot_of, spend
from tests.support.wallets import ALICE, BOB, Signer

NOT_ASKED_YET = {State.RECEIVED, State.WAITING_PERSON, State.WAITING_DEVICE, State.SIGNING}


def reachable(start: State) -> set[State]:
    found, front = set(), {start}
    while front:
        found |= front
        front = {after for (before, _), after in TABLE.items() if before in front} - found
    return found


def test_every_state_is_reached_and_every_move_is_used() -> None:
    assert reachable(State.RECEIVED) == set(State)
    assert {move for _, move in TABLE} == set(ProposalMove)


@pytest.mark.parametrize(
    ("into", "ways"),
    [
        # Only an approval leads to the device, and only from there is it asked.
        (State.SIGNING, {(State.WAITING_DEVICE, ProposalMove.ASK_DEVICE)}),
        (
            State.WAITING_DEVICE,
            {
                (State.WAITING_PERSON, ProposalMove.APPROVE),
                (State.INTERRUPTED, ProposalMove.APPROVE),
                (State.SIGNING, ProposalMove.DEVICE_NOT_READY),
            },
        ),
        (State.WAITING_PERSON, {(State.RECEIVED, ProposalMove.ALLOW)}),
        (
            State.EXPORTED,
            {
                (State.WAITING_DEVICE, ProposalMove.EXPORT),
                (State.EXPORTED, ProposalMove.EXPORT),
                (State.EXPORTED, ProposalMove.APPROVE),
            },
        ),
        # Only verified signatures are stored.
        (
            State.SIGNED,
            {
                (State.EXPORTED, ProposalMove.ANSWERED),
                (State.SIGNING, ProposalMove.VERIFIED),
                (State.SUBMITTING, ProposalMove.UNDELIVERED),
                (State.SUBMITTING, ProposalMove.RESTARTED),
            },
        ),
    ],
)
def test_no_other_way_leads_to_what_must_be_earned(
    into: State, ways: set[tuple[State, ProposalMove]]
) -> None:
    assert {key for key, after in TABLE.items() if after is into} == ways


def test_what_was_not_looked_at_is_not_declined() -> None:
    assert (State.RECEIVED, ProposalMove.DECLINE) not in TABLE


@pytest.mark.parametrize("signed", [State.SIGNED, State.QUARANTINED, State.EXPORTED])
def test_from_what_is_or_may_be_signed_and_from_what_is_set_aside_no_way_leads_to_a_device(
    signed: State,
) -> None:
    assert reachable(signed).isdisjoint(NOT_ASKED_YET)


def test_the_platforms_word_does_not_pull_a_proposal_from_under_the_device() -> None:
    words = "WENT_OUT CONFIRM EXPIRE SUPERSEDE WITHDRAW ALTERED"
    assert not {(State.SIGNING, ProposalMove[word]) for word in words.split()} & set(TABLE)


def test_what_the_table_does_not_have_is_refused() -> None:
    for state, move in set(product(State, ProposalMove)) - set(TABLE):
        with pytest.raises(IllegalEvent, match=str(move)):
            advance(state, move)


def shown(*signers: Signer, **changes: object) -> Snapshot:
    """What the platform shows once these have signed."""
    snapshot = snapshot_of(spend(n_inputs=2), **changes)
    for signer in signers:
        snapshot = replace(snapshot, psbt=signed_by(signer, snapshot), collected=snapshot.collected + 1)
    return snapshot


def record_of(snapshot: Snapshot) -> Record:
    return receive(snapshot, review_context()).record


@pytest.mark.parametrize("signers", [(ALICE,), (BOB, ALICE)])
def test_our_signature_counts_as_made_here(signers):
    step = decide(record_of(shown(*signers)), events.Recalled(), review_context())
    assert step.record.state is State.SUBMITTED
    assert step.record.signature.psbt == shown(*signers).psbt
    assert step.record.approval is None
    recalled, signed = step.notes
    assert (recalled.kind, signed.kind) == ("recalled", "signed")
    assert [amount for _script, amount in recalled.facts["payments"]] == [50_000]
    assert signed.facts["places"]


def test_a_signature_of_some_inputs_counts_and_the_rest_is_said():
    """The platform may hide what it was shown of the others."""
    whole = shown()
    part = replace(whole, psbt=ALICE.sign(Psbt.parse(whole.psbt), inputs=[1]).to_bytes())
    step = decide(record_of(part), events.Recalled(), review_context())
    assert step.record.state is State.QUARANTINED
    assert step.record.signature is not None
    assert [note.kind for note in step.notes] == ["recalled", "signed"]
    (told,) = (news.sentence for news in step.news)
    assert step.record.reason == told
    assert told.startswith(f"{REASON} It shows none for inputs 0, which are not signed here any more: ")
    assert told.endswith(": have it proposed anew.")
    for other in (shown(ALICE), replace(part, status=ProposalStatus.CONFIRMED)):
        (news,) = decide(record_of(other), events.Recalled(), review_context()).news
        assert "proposed anew" not in news.sentence


ONCE = decide(record_of(shown(ALICE)), events.Recalled(), review_context()).record
NOTHING = {
    "nobody signed": record_of(shown()),
    "others signed": record_of(shown(BOB)),
    "a device works": replace(record_of(shown(ALICE)), state=State.SIGNING),
    "it is stored": ONCE,
}


@pytest.mark.parametrize("record", NOTHING.values(), ids=NOTHING)
def test_nothing_is_taken_where(record):
    assert decide(record, events.Recalled(), review_context()) == Step(record)


def test_a_signature_that_does_not_verify_is_none():
    good = shown(ALICE)
    bad = good.psbt
    for item in Psbt.parse(good.psbt).inputs:
        (signature,) = item.partial_signatures.values()
        bad = bad.replace(signature, signature[:40] + bytes([signature[40] ^ 1]) + signature[41:])
    assert own_signature(good, review_context()) is not None
    assert own_signature(good, review_context(pin=None)) is None
    assert own_signature(replace(good, psbt=bad), review_context()) is None


def test_a_bad_signature_of_another_key_hides_ours_from_nothing():
    good = shown(BOB, ALICE)
    (item, *_others), (theirs, *_rest) = Psbt.parse(good.psbt).inputs, Psbt.parse(shown(BOB).psbt).inputs
    (signature,) = theirs.partial_signatures.values()
    bad = signature[:40] + bytes([signature[40] ^ 1]) + signature[41:]
    beside = replace(good, psbt=good.psbt.replace(signature, bad))
    assert len(item.partial_signatures) == 2
    assert beside.psbt != good.psbt
    assert own_signature(beside, review_context()) is not None
    step = decide(record_of(beside), events.Recalled(), review_context())
    assert step.record.signature is not None


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (ProposalStatus.BROADCASTING, State.BROADCAST),
        (ProposalStatus.CONFIRMED, State.CONFIRMED),
        (ProposalStatus.CANCELLED, State.WITHDRAWN),
    ],
)
def test_the_platforms_word_about_its_end_stands_beside_the_signature(status, state):
    step = decide(record_of(shown(ALICE, status=status)), events.Recalled(), review_context())
    assert step.record.state is state
    assert step.record.signature is not None


def chain(*subjects: str) -> list[Entry]:
    entries: list[Entry] = []
    for number, subject in enumerate(subjects, 1):
        previous = entries[-1].digest if entries else GENESIS
        entries.append(
            link(number, "2026-01-02T03:04:05.000Z", Note("approved", subject, {"fee": 2}), previous)
        )
    return entries


WHOLE = chain("p-1", "p-2", "p-3")
SECOND = WHOLE[1]


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([], None),
        (WHOLE, None),
        ([WHOLE[0], replace(SECOND, at="2026-01-02T03:04:06.000Z"), WHOLE[2]], (2, "entry 2 was changed")),
        ([WHOLE[0], replace(SECOND, note=Note("approved", "p-2", {"fee": 3}))], (2, "entry 2 was changed")),
        ([WHOLE[0], replace(SECOND, note=Note("declined", "p-2", {"fee": 2}))], (2, "entry 2 was changed")),
        ([WHOLE[0], replace(SECOND, note=Note("approved", "p-9", {"fee": 2}))], (2, "entry 2 was changed")),
        ([WHOLE[0], WHOLE[2]], (2, "entry 2 is missing")),
        # Written anew, with a hash of its own.
        ([*chain("p-1", "p-9"), WHOLE[2]], (3, "entry 3 does not follow the entry before it")),
    ],
)
def test_what_was_done_to_the_chain_is_named(entries: list[Entry], fault: tuple[int, str] | None) -> None:
    assert first_fault(entries) == fault
