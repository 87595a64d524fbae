"""PSBTs of version 2 (BIP-370): the official vectors, a round trip without loss, and what two others read."""

import base64
from dataclasses import replace

import pytest
from embit.psbt import PSBT as EmbitPsbt  # noqa: N811 - a class named like a constant
from hwilib.psbt import PSBT as HwiPsbt  # noqa: N811 - a class named like a constant
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    InvalidPsbt,
    MultisigError,
    Psbt,
    PsbtLimits,
    PsbtTooLarge,
    ReceivedPsbt,
    Transaction,
    to_version_2,
)
from multisig.wire import Reader, with_length
from tests.support.vectors import official
from tests.support.wallets import ALICE, BOB, make_spend, make_vault

VAULT = make_vault()
SPEND = make_spend(VAULT)


def of_kind(*kinds: str):
    return official("bip370.json", lambda v: v["kind"] in kinds)


# --- official vectors


@pytest.mark.parametrize("vector", of_kind("invalid"))
def test_bip370_refuses_what_is_invalid(vector):
    with pytest.raises(InvalidPsbt):
        ReceivedPsbt.parse(vector["psbt_base64"])


@pytest.mark.parametrize("vector", of_kind("valid"))
def test_bip370_reads_what_is_valid_and_loses_nothing(vector):
    received = ReceivedPsbt.parse(vector["psbt_base64"])
    assert received.version == 2
    raw = base64.b64decode(vector["psbt_base64"])
    assert maps_of(received.answer(received.psbt)) == maps_of(raw)


@pytest.mark.parametrize("vector", of_kind("locktime"))
def test_bip370_lock_times(vector):
    expected = vector["expected_locktime"]
    if expected is None:
        with pytest.raises(InvalidPsbt, match="requires a height"):
            ReceivedPsbt.parse(vector["psbt_base64"])
    else:
        assert ReceivedPsbt.parse(vector["psbt_base64"]).psbt.tx.locktime == expected


@pytest.mark.parametrize("vector", of_kind("valid"))
def test_another_implementation_reads_the_same_transaction(vector):
    ours = ReceivedPsbt.parse(vector["psbt_base64"]).psbt.tx
    assert EmbitPsbt.from_string(vector["psbt_base64"]).tx.version == ours.version
    theirs = HwiPsbt()
    theirs.deserialize(vector["psbt_base64"])
    same_transaction(theirs, ours)


def same_transaction(theirs: HwiPsbt, ours: Transaction) -> None:
    """But for its version, which HWI 3.2.0 takes for 1."""
    assert theirs.compute_lock_time() == ours.locktime
    assert [(item.prev_txid[::-1].hex(), item.prev_out) for item in theirs.inputs] == [
        (item.outpoint.txid, item.outpoint.vout) for item in ours.inputs
    ]
    assert [(output.amount, output.script) for output in theirs.outputs] == [
        (output.amount, output.script_pubkey) for output in ours.outputs
    ]


# --- written and read again


def maps_of(raw: bytes) -> list[dict[bytes, bytes]]:
    """Its maps, whatever is in them and in whichever order."""
    reader, found = Reader(raw), []
    reader.take(5)
    while reader.remaining:
        found.append({})
        while key := reader.sized():
            found[-1][key] = reader.sized()
    return found


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
def test_a_round_trip_is_the_same(locktime, sequence, version):
    tx = SPEND.tx
    changed = replace(
        tx,
        version=version,
        locktime=locktime,
        inputs=tuple(replace(item, sequence=sequence) for item in tx.inputs),
    )
    psbt = replace(SPEND, tx=changed, inputs=tuple(replace(item, sequence=sequence) for item in SPEND.inputs))
    received = ReceivedPsbt.parse(to_version_2(psbt))
    assert (received.version, received.psbt) == (2, psbt)


def test_others_read_what_is_written():
    raw = to_version_2(ALICE.sign(SPEND))
    theirs = HwiPsbt()
    theirs.deserialize(base64.b64encode(raw).decode())
    same_transaction(theirs, SPEND.tx)
    embits = EmbitPsbt.parse(raw)
    assert embits.tx.txid().hex() == SPEND.tx.txid
    assert [dict(item.partial_sigs) for item in theirs.inputs] == [
        dict(item.partial_signatures) for item in ALICE.sign(SPEND).inputs
    ]


def test_signatures_go_back_into_what_came():
    unknown = with_length(b"\xf0of another") + with_length(b"kept")
    modifiable = with_length(b"\x06") + with_length(b"\x0f")
    raw = to_version_2(SPEND)
    came = raw[:5] + unknown + modifiable + raw[5:]
    received = ReceivedPsbt.parse(came)
    answer = received.answer(BOB.sign(ALICE.sign(received.psbt)))
    globals_, *rest = maps_of(answer)
    assert globals_ == maps_of(came)[0] | {b"\x06": b"\x0c"}
    before = maps_of(came)[1:]
    for old, new in zip(before, rest, strict=True):
        assert old.items() <= new.items()
    added = [key[0] for old, new in zip(before, rest, strict=True) for key in new.keys() - old.keys()]
    assert added == [0x02] * 2 * len(SPEND.inputs)
    assert ReceivedPsbt.parse(answer).psbt == BOB.sign(ALICE.sign(SPEND))


def test_nothing_signed_changes_nothing():
    came = to_version_2(SPEND)
    assert maps_of(ReceivedPsbt.parse(came).answer(SPEND)) == maps_of(came)
    assert ReceivedPsbt.parse(SPEND.to_bytes()).answer(ALICE.sign(SPEND)) == ALICE.sign(SPEND).to_bytes()


def test_signatures_of_another_transaction_are_refused():
    other = replace(SPEND, tx=replace(SPEND.tx, locktime=7))
    with pytest.raises(InvalidPsbt, match="another transaction"):
        ReceivedPsbt.parse(to_version_2(SPEND)).answer(other)


def test_bounds_come_before_maps():
    raw = to_version_2(SPEND)
    count = with_length(b"\x04") + with_length(bytes([len(SPEND.inputs)]))
    many = raw.replace(count, with_length(b"\x04") + with_length(b"\xfe\xff\xff\xff\x00"))
    for limits, data in ((PsbtLimits(max_bytes=10), raw), (PsbtLimits(), many)):
        with pytest.raises(PsbtTooLarge):
            ReceivedPsbt.parse(data, limits)
    with pytest.raises(PsbtTooLarge):
        ReceivedPsbt.parse(base64.b64encode(raw).decode(), PsbtLimits(max_bytes=10))


@given(st.data())
def test_s23_damage_is_refused_or_read_by_the_same_rules(data):
    raw = bytearray(to_version_2(SPEND))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        received = ReceivedPsbt.parse(bytes(raw))
    except MultisigError:
        return
    assert Psbt.parse(received.psbt.to_bytes()) == received.psbt
