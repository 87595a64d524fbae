"""Blocks from outside: what a header commits to is carried whole, once, and nothing else."""

import pytest

from custody.server.chain.embedded.mining import build_block
from custody.server.chain.engine import HEADER_BYTES, block_hash, split_block
from custody.server.chain.raw_blocks import read_block
from custody.server.domain.errors import ChainUnavailable
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats


def block_of(payments: int) -> bytes:
    """A block's bytes: a coinbase and so many payments."""
    spends = [
        Transaction(2, (TxIn(OutPoint("77" * 32, number), 0),), (TxOut(Sats(1), b"\x51"),), 0)
        for number in range(payments)
    ]
    return build_block(
        parent=bytes(32), height=7, time=1_700_000_000, transactions=spends, fees=Sats(0), extra_nonce=0
    )


def with_transactions(raw: bytes, transactions) -> bytes:
    """Under the same header."""
    return (
        raw[:HEADER_BYTES] + bytes([len(transactions)]) + b"".join(each.serialize() for each in transactions)
    )


def read(raw: bytes):
    return read_block(raw, block_hash(raw)[::-1].hex())


@pytest.mark.parametrize("payments", range(7))
def test_a_block_is_read_as_it_is(payments):
    raw = block_of(payments)
    assert read(raw).transactions == split_block(raw)


@pytest.mark.parametrize(("payments", "repeated"), [(2, 1), (4, 1), (5, 2), (6, 1)])
def test_a_block_that_shows_its_end_twice_is_none(payments, repeated):
    """CVE-2012-2459: it has the hash, and the root; its last payments happened once."""
    raw = block_of(payments)
    whole = split_block(raw)
    with pytest.raises(ChainUnavailable, match="does not carry"):
        read(with_transactions(raw, whole + whole[-repeated:]))


def test_nor_is_one_that_lacks_some_or_turns_them_round():
    raw = block_of(3)
    whole = split_block(raw)
    for others in ((), whole[:-1], whole[:2], whole[::-1], (*whole, whole[1])):
        with pytest.raises(ChainUnavailable, match="does not carry"):
            read(with_transactions(raw, others))


def test_other_bytes_are_not_the_block():
    raw = block_of(1)
    name = block_hash(raw)[::-1].hex()
    for other in (b"", raw[:HEADER_BYTES], raw[:-1], raw[:HEADER_BYTES] + b"\xff"):
        with pytest.raises(ChainUnavailable):
            read_block(other, name)
    with pytest.raises(ChainUnavailable, match="other bytes"):
        read_block(raw, "00" * 32)
