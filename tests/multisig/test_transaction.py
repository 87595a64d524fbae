from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    MAX_MONEY,
    InvalidAmount,
    InvalidTransaction,
    OutPoint,
    RelativeLock,
    Sats,
    SighashCache,
    Transaction,
    TxIn,
    TxOut,
    relative_lock,
    verify_ecdsa,
)
from multisig.hashes import sha256d
from multisig.transaction import MAX_TRANSACTION_BYTES, RawTransaction, read_transactions
from multisig.wire import Reader, compact_size
from tests.support.policies import outpoints, transactions
from tests.support.vectors import official, own

TXID = "ab" * 32
PLAIN = Transaction(2, (TxIn(OutPoint(TXID, 1), 0xFFFFFFFD),), (TxOut(Sats(1_000), b"\x51"),), 0)
SIGNED = replace(PLAIN, inputs=(replace(PLAIN.inputs[0], witness=(b"", b"sig", b"script")),))


@given(transactions())
def test_round_trip(transaction):
    raw = transaction.serialize()
    parsed = Transaction.parse(raw)
    assert parsed == transaction
    assert parsed.serialize() == raw
    assert parsed.wtxid == sha256d(raw)[::-1].hex()


@given(transactions())
def test_without_witnesses(transaction):
    stripped = transaction.serialize(include_witness=False)
    parsed = Transaction.parse(stripped, witness=False)
    assert not parsed.has_witness
    assert parsed.txid == transaction.txid == parsed.wtxid
    assert transaction.weight == 3 * len(stripped) + len(transaction.serialize())
    assert 4 * transaction.vsize - 3 <= transaction.weight <= 4 * transaction.vsize


@given(transactions(), st.data())
def test_s23_truncated_or_extended_bytes_are_refused(transaction, data):
    raw = transaction.serialize()
    with pytest.raises(InvalidTransaction):
        Transaction.parse(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises(InvalidTransaction):
        Transaction.parse(raw + data.draw(st.binary(min_size=1, max_size=4)))


@given(st.binary(max_size=200), st.booleans())
def test_s23_any_bytes_are_parsed_exactly_or_refused(data, witness):
    try:
        parsed = Transaction.parse(data, witness=witness)
    except InvalidTransaction:
        return
    assert parsed.serialize(include_witness=witness) == data


@given(transactions(), st.data())
def test_s23_bit_flips_are_parsed_exactly_or_refused(transaction, data):
    raw = bytearray(transaction.serialize())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        parsed = Transaction.parse(bytes(raw))
    except InvalidTransaction:
        return
    assert parsed.serialize() == raw


@pytest.mark.parametrize("vector", own("transactions.json"))
def test_chain_transactions(vector):
    transaction = Transaction.parse(bytes.fromhex(vector["hex"]))
    assert transaction.serialize().hex() == vector["hex"]
    assert (transaction.txid, transaction.weight) == (vector["txid"], vector["weight"])


RAW = PLAIN.serialize()
AMOUNT = (1_000).to_bytes(8, "little")
EMPTY = Transaction(2, (), (TxOut(Sats(1), b""),), 0)


def test_the_form_without_witnesses_may_have_no_inputs():
    assert Transaction.parse(EMPTY.serialize(), witness=False) == EMPTY


@pytest.mark.parametrize(
    ("raw", "witness", "words"),
    [
        (EMPTY.serialize(), True, None),
        (SIGNED.serialize(), False, None),
        # A marker without any witness.
        (RAW[:4] + b"\x00\x01" + RAW[4:-4] + b"\x00" + RAW[-4:], True, "witnesses"),
        (RAW[:4] + b"\xfd\x01\x00" + RAW[5:], True, "shortest"),
        (bytes(MAX_TRANSACTION_BYTES + 1), True, "larger"),
        (bytes.fromhex("02000000" + "fe00ffff00") + bytes(100_000), True, "more items"),
        *(
            (RAW.replace(AMOUNT, amount.to_bytes(8, "little")), True, None)
            for amount in (MAX_MONEY + 1, 2**63, 2**64 - 1)
        ),
    ],
)
def test_s23_what_is_no_transaction_is_refused_within_bounds(raw, witness, words):
    with pytest.raises(InvalidTransaction, match=words):
        Transaction.parse(raw, witness=witness)


def test_no_output_has_less_than_nothing():
    with pytest.raises(InvalidAmount):
        TxOut(Sats(-1), b"")


@given(outpoints())
def test_outpoint_form(outpoint):
    reader = Reader(outpoint.serialize())
    assert OutPoint(reader.take(32)[::-1].hex(), reader.uint(4)) == outpoint
    assert str(outpoint) == f"{outpoint.txid}:{outpoint.vout}"


@pytest.mark.parametrize(
    ("txid", "vout"),
    [("ab" * 31, 0), ("AB" * 32, 0), ("xy" * 32, 0), ("", 0), (TXID, -1), (TXID, 2**32), (TXID, True)],
)
def test_impossible_outpoints(txid, vout):
    with pytest.raises(InvalidTransaction):
        OutPoint(txid, vout)


@pytest.mark.parametrize("number", [-1, 2**32])
@pytest.mark.parametrize("field", ["version", "locktime", "sequence"])
def test_numbers_have_32_bits(field, number):
    with pytest.raises(InvalidTransaction):
        replace(PLAIN.inputs[0] if field == "sequence" else PLAIN, **{field: number})


def sighashes(vector):
    signed = Transaction.parse(bytes.fromhex(vector["signed_transaction_hex"]))
    cache = SighashCache(signed)
    for case in vector["signatures"]:
        spent = vector["inputs"][case["input_index"]]
        script_code = bytes.fromhex(spent["witness_script_hex"])
        if "script_code_with_length_hex" in case:
            script_code = Reader(bytes.fromhex(case["script_code_with_length_hex"])).sized()
        digest = cache.segwit_v0(
            case["input_index"], script_code, Sats(spent["value_sat"]), case["sighash_type"]
        )
        yield case, digest


@pytest.mark.parametrize("vector", official("bip143.json"))
def test_bip143(vector):
    checked = 0
    for case, digest in sighashes(vector):
        assert digest.hex() == case["sighash_hex"]
        if "signature_hex" in case:
            signature = bytes.fromhex(case["signature_hex"])
            der = signature[:-1] if signature[1] == len(signature) - 3 else signature
            high_s = "S is high" in case.get("note", "")
            assert verify_ecdsa(bytes.fromhex(case["public_key_hex"]), digest, der) is not high_s
        checked += 1
    assert checked


@pytest.mark.parametrize("index", [-1, 1])
def test_no_such_input(index):
    with pytest.raises(InvalidTransaction):
        SighashCache(PLAIN).segwit_v0(index, b"\x51", Sats(1))


@given(transactions())
def test_what_was_written_before_says_nothing_about_a_changed_transaction(transaction):
    before = (transaction.serialize(), transaction.serialize(include_witness=False), transaction.txid)
    changed = replace(transaction, version=transaction.version ^ 1)
    assert changed.serialize() == (transaction.version ^ 1).to_bytes(4, "little") + before[0][4:]
    assert changed.serialize(include_witness=False)[4:] == before[1][4:]
    assert changed.txid != before[2]


def test_what_all_inputs_share_is_hashed_once(monkeypatch):
    """Else n inputs cost n times n: the quadratic hashing that BIP-143 ended."""
    count = 200
    many = replace(PLAIN, inputs=tuple(TxIn(OutPoint(TXID, vout), 0) for vout in range(count)))
    serialised = []
    original = OutPoint.serialize
    monkeypatch.setattr(OutPoint, "serialize", lambda self: serialised.append(self) or original(self))
    cache = SighashCache(many)
    for index in range(count):
        cache.segwit_v0(index, b"\x51", Sats(1))
    assert len(serialised) == 2 * count


DISABLED, IN_TIME = 1 << 31, 1 << 22


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        (1, RelativeLock(blocks=1)),
        (52_560, RelativeLock(blocks=52_560)),
        (0xFFFF, RelativeLock(blocks=0xFFFF)),
        (IN_TIME | 1, RelativeLock(units=1)),
        (IN_TIME | 0xFFFF, RelativeLock(units=0xFFFF)),
        # Bits that mean nothing are masked out, and do not hide the lock.
        (0x7FBF_0000 | 7, RelativeLock(blocks=7)),
        (0, None),
        (IN_TIME, None),
        (DISABLED | 52_560, None),
        (0xFFFF_FFFD, None),
        (0xFFFF_FFFF, None),
    ],
)
def test_a_sequence_is_read_as_consensus_reads_it(sequence: int, expected: RelativeLock | None) -> None:
    assert relative_lock(sequence, 2) == expected
    assert relative_lock(sequence, 0xFFFF_FFFF) == expected


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_no_coin_has_to_wait(version: int) -> None:
    assert relative_lock(52_560, version) is None


def test_a_lock_in_time_is_in_units_of_512_seconds_and_in_words() -> None:
    assert RelativeLock(units=0xFFFF).time == timedelta(seconds=33_553_920)
    assert str(RelativeLock(units=169)) == "24.0 hours (169 units of 512 s)"
    assert str(RelativeLock(blocks=52_560)) == "52,560 blocks"
    assert str(RelativeLock(blocks=1)) == "1 block"


def joined(several: list[Transaction]) -> bytes:
    return compact_size(len(several)) + b"".join(each.serialize() for each in several)


def as_it_stands(transaction: Transaction) -> RawTransaction:
    """By the whole parser's word."""
    return RawTransaction(
        transaction.serialize(),
        bytes.fromhex(transaction.txid)[::-1],
        tuple(txin.outpoint.serialize() for txin in transaction.inputs),
        tuple(out.script_pubkey for out in transaction.outputs),
    )


@given(st.lists(transactions(), max_size=3), st.data())
def test_s23_several_are_read_behind_their_number_and_nothing_else(several, data):
    raw = joined(several)
    found = read_transactions(raw)
    assert found == tuple(map(as_it_stands, several))
    assert [(each.txid, each.parse()) for each in found] == [(each.txid, each) for each in several]
    for other in (
        raw + b"\x00",
        raw[: data.draw(st.integers(0, len(raw) - 1))],
        b"\xfe\xff\xff\xff\x00" + raw[1:],
    ):
        with pytest.raises(InvalidTransaction):
            read_transactions(other)


@given(transactions(), st.data())
def test_s23_whatever_bytes_the_whole_parser_refuses_are_refused_and_no_others(transaction, data):
    raw = bytearray(transaction.serialize())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(
            st.sampled_from((0, 1, 2, 0x7F, 0xFC, 0xFD, 0xFE, 0xFF)) | st.integers(0, 255)
        )
    try:
        whole = Transaction.parse(bytes(raw))
    except InvalidTransaction:
        with pytest.raises(InvalidTransaction):
            read_transactions(b"\x01" + raw)
    else:
        assert read_transactions(b"\x01" + raw) == (as_it_stands(whole),)
