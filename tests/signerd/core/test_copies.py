"""S33: copies of one imported PSBT, each with the signatures of some signers on some inputs, before, while
and after it is signed here by cable or by file. What is given back has all of them, as bdk combines them.
"""

import base64
from functools import reduce

import bdkpython
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import Psbt, ReceivedPsbt, accept_signatures, to_version_2, verify_signatures
from signerd.core import events
from signerd.core.engine import decide
from signerd.core.following import receive
from signerd.core.review import review
from signerd.core.signing import imported_snapshot
from signerd.core.states import State
from signerd.core.values import Imported, Record
from signerd.daemon.imported import signed_of
from signerd.errors import AnswerRefused, RefusedByChecks
from tests.support.desk import NETWORK, VAULT, make_pin, own_keys, review_context, snapshot_of
from tests.support.examples import examples
from tests.support.wallets import ALICE, BOB, CAROL, Signer, make_spend, with_input

SPEND = make_spend(VAULT)
SIGNERS = (ALICE, BOB, CAROL)
IMPORTED = Imported("Wallet", None, 0)
AROUND = review_context()
INPUTS = st.sets(st.integers(0, 1))


@st.composite
def copies(draw) -> Psbt:
    """What a program may hold of it, of either version, and with a field absent that is not needed twice."""
    copy = SPEND
    for signer in SIGNERS:
        copy = with_signatures(copy, signer, draw(INPUTS))
    if draw(st.booleans()):
        copy = with_input(copy, 0, witness_utxo=None)
    return ReceivedPsbt.parse(to_version_2(copy)).psbt if draw(st.booleans()) else copy


def imported(psbt: Psbt) -> Record:
    snapshot = imported_snapshot("i-1", psbt.to_bytes(), IMPORTED, [make_pin()], own_keys(), NETWORK)
    return receive(snapshot, AROUND).record


def again(record: Record, psbt: Psbt) -> Record:
    step = decide(record, events.ImportedAgain(psbt.to_bytes()), AROUND)
    assert step.record.state is record.state
    return step.record


def approved(record: Record) -> Record:
    found = review(record.snapshot, AROUND)
    return decide(record, events.Approved(found.digest, found.to_acknowledge), AROUND).record


def asked(record: Record, *, by_file: bool) -> Record:
    return decide(record, events.Exported() if by_file else events.DeviceFound("d-1"), AROUND).record


def answered(record: Record, answer: Psbt, *, by_file: bool) -> Record:
    kind = events.AnswerImported if by_file else events.DeviceReturned
    return decide(record, kind(answer.to_bytes()), AROUND).record


def with_signatures(psbt: Psbt, signer: Signer, inputs: set[int]) -> Psbt:
    return psbt.with_signatures({index: signer.signatures(SPEND, index) for index in inputs})


def bdk_combines(psbts: list[Psbt]) -> Psbt:
    theirs = (bdkpython.Psbt(psbt.to_base64()) for psbt in psbts)
    return Psbt.parse(base64.b64decode(reduce(lambda one, other: one.combine(other), theirs).serialize()))


@settings(max_examples=examples(60))
@given(
    first=copies(),
    waiting=st.lists(copies(), max_size=2),
    at_the_device=st.lists(copies(), max_size=2),
    signed=st.lists(copies(), max_size=2),
    by_file=st.booleans(),
    on_the_card=INPUTS,
)
def test_what_came_is_given_back_with_our_own(first, waiting, at_the_device, signed, by_file, on_the_card):
    record = approved(reduce(again, waiting, imported(first)))
    record = asked(record, by_file=by_file)
    given_out = Psbt.parse(record.exported or record.snapshot.psbt)
    record = reduce(again, at_the_device, record)
    answer = with_signatures(given_out, ALICE, {0, 1})
    if by_file:
        answer = with_signatures(answer, CAROL, on_the_card)
    record = reduce(again, signed, answered(record, answer, by_file=by_file))
    assert record.state is State.HANDED_OVER
    given = signed_of(record)
    combined = bdk_combines([first, *waiting, *at_the_device, answer, *signed])
    assert [i.partial_signatures for i in given.inputs] == [i.partial_signatures for i in combined.inputs]
    verify_signatures(given, VAULT)
    # In both versions it is what a program reads that has the first copy.
    assert ReceivedPsbt.parse(ReceivedPsbt.parse(to_version_2(first)).answer(given)).psbt == given


@settings(max_examples=examples(30))
@given(first=copies(), copy=copies(), place=st.integers(0, 1), bit=st.integers(8 * 8, 8 * 60))
def test_a_signature_that_does_not_verify_is_kept_out_and_named(first, copy, place, bit):
    flipped = bytearray(BOB.signatures(SPEND, place)[key_of(BOB, place)])
    flipped[bit // 8] ^= 1 << bit % 8
    copy = with_input(copy, place, partial_signatures={key_of(BOB, place): bytes(flipped)})
    known = imported(first)
    with pytest.raises(RefusedByChecks, match=f"input {place} is invalid"):
        again(known, copy)


def key_of(signer, place: int) -> bytes:
    origins = SPEND.inputs[place].derivations.items()
    return next(key for key, origin in origins if origin.fingerprint == signer.fingerprint)


def test_a_copy_of_a_vault_that_is_not_pinned_any_more_is_refused():
    known = imported(SPEND)
    with pytest.raises(RefusedByChecks, match="not pinned"):
        decide(known, events.ImportedAgain(BOB.sign(SPEND).to_bytes()), review_context(pin=None))


def test_of_a_proposals_file_our_own_signatures_are_taken_and_all_are_verified():
    """The platform takes from each signer their own."""
    record = asked(approved(receive(snapshot_of(SPEND), AROUND).record), by_file=True)
    both = BOB.sign(ALICE.sign(SPEND))
    done = answered(record, both, by_file=True)
    alone = accept_signatures(SPEND, ALICE.sign(SPEND), VAULT, ALICE.fingerprint)
    assert Psbt.parse(done.signature.psbt) == alone
    with pytest.raises(AnswerRefused, match="is invalid"):
        answered(record, BOB.sign(ALICE.sign(SPEND), sighash=0x02), by_file=True)
