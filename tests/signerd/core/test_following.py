"""A signature of ours that a restored journal has forgotten, found in what the platform shows."""

from dataclasses import replace

import pytest

from custody.schemas.proposals import ProposalStatus
from multisig import Psbt
from signerd.core import events
from signerd.core.engine import decide
from signerd.core.events import Step
from signerd.core.following import REASON, own_signature, receive
from signerd.core.states import State
from signerd.core.values import Record, Snapshot
from tests.support.desk import review_context, signed_by, snapshot_of, spend
from tests.support.wallets import ALICE, BOB, Signer


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
