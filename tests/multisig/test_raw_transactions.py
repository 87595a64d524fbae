"""Transactions as they stand in a block are what the whole parser reads, and are refused where it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import InvalidTransaction, Transaction
from multisig.raw_transactions import RawTransaction, read_transactions
from multisig.wire import compact_size
from tests.support.policies import transactions


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
