"""S23: damaged PSBTs: refused in bounded time, or read as exactly what they were before."""

import random
import tracemalloc
from dataclasses import replace

import pytest

from multisig import MultisigError, Psbt, PsbtTooLarge
from multisig.wire import with_length
from signerd.core.review import review
from tests.attacks.cases import damage, sound
from tests.attacks.recipes.absurd import DAMAGES

HONEST = sound()
# What no reader may say: that it is sound, and another one.
ANOTHER = "another"
# Each run flips the same bits; all of them take minutes.
FLIPS = random.Random(23).sample(range(8 * len(HONEST.raw)), 250)
# Nothing that is announced may be reserved before it is there.
MOST_BYTES_HELD = 64 << 20


def outcome(data: bytes) -> str | None:
    try:
        parsed = Psbt.parse(data)
    except MultisigError as error:
        return error.code
    return None if parsed == HONEST.parsed else ANOTHER


@pytest.mark.parametrize("entry", DAMAGES, ids=str)
def test_s23_it_is_refused_by_name_or_read_as_it_was(entry):
    assert outcome(damage(entry)) == entry.outcome


@pytest.mark.parametrize("entry", DAMAGES, ids=str)
def test_s23_signerd_refuses_it_and_raises_nothing(entry):
    found = review(HONEST.snapshot(damage(entry)), HONEST.review_context())
    assert found.allowed is (entry.outcome is None)
    if entry.outcome is not None:
        (verdict,) = found.refusals
        assert verdict.name == "psbt-readable"
        assert verdict.figures == {"code": entry.outcome}


@pytest.mark.parametrize("entry", DAMAGES, ids=str)
def test_s23_no_memory_is_taken_for_what_is_only_announced(entry):
    data = damage(entry)
    tracemalloc.start()
    try:
        outcome(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST_BYTES_HELD


def test_s23_every_beginning_of_it_is_refused():
    for length in range(len(HONEST.raw)):
        with pytest.raises(MultisigError):
            Psbt.parse(HONEST.raw[:length])


@pytest.mark.parametrize("bit", FLIPS)
def test_s23_one_flipped_bit_changes_nothing_that_is_signed_unseen(bit):
    """It is refused, or the transaction and every figure shown of it are those of the sound one."""
    whole = review(HONEST.snapshot(), HONEST.review_context())
    changed = bytearray(HONEST.raw)
    changed[bit // 8] ^= 1 << bit % 8
    found = review(HONEST.snapshot(bytes(changed)), HONEST.review_context())
    if found.allowed:
        assert Psbt.parse(found.snapshot.psbt).tx == HONEST.parsed.tx
        shown, before = found.inspection, whole.inspection
        assert replace(shown, findings=(), digest="") == replace(before, findings=(), digest="")


def test_s23_a_transaction_of_too_many_inputs():
    tx = HONEST.parsed.tx
    many = replace(tx, inputs=tx.inputs * 501)
    data = b"psbt\xff\x01\x00" + with_length(many.serialize(include_witness=False)) + bytes(1 + 1002 + 2)
    with pytest.raises(PsbtTooLarge):
        Psbt.parse(data)
