"""The engine aborts the process on a wrong argument: each is refused before. Blocks from outside have exactly
the transactions to which the header commits.
"""

from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import pbk
import pytest

from custody.server.chain.embedded.mining import build_block
from custody.server.chain.engine import (
    HEADER_BYTES,
    ChainClosed,
    Chainstate,
    InvalidBlock,
    InvalidSpend,
    verify_transaction,
)
from custody.server.chain.raw_blocks import BlockHeader, merkle_root, read_block, unmistakable_root
from custody.server.errors import ChainUnavailable
from multisig.hashes import sha256d
from multisig.script import p2wsh
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import MAX_MONEY, Sats
from tests.support.regtest import START, open_output, open_script

SPENT = TxOut(Sats(10_000), open_output(1))
ONE_KEY = b"\x51\x21" + b"\x02" + b"\x11" * 32 + b"\x51\xae"
GOOD = Transaction(
    version=2,
    inputs=(TxIn(OutPoint("11" * 32, 0), 0xFFFFFFFD, b"", (open_script(1),)),),
    outputs=(TxOut(Sats(9_000), open_output(2)),),
    locktime=0,
)


def test_a_wrong_witness_names_its_input():
    second = TxIn(OutPoint("22" * 32, 0), 0xFFFFFFFD, b"", (open_script(2),))
    both = replace(GOOD, inputs=(GOOD.inputs[0], second))
    verify_transaction(both, [SPENT, TxOut(Sats(5), open_output(2))])
    with pytest.raises(InvalidSpend) as caught:
        verify_transaction(both, [SPENT, TxOut(Sats(5), open_output(3))])
    assert caught.value.input_index == 1


@pytest.mark.parametrize(
    ("transaction", "spent", "reason"),
    [
        (GOOD, [], "spent outputs"),
        (GOOD, [SPENT, SPENT], "spent outputs"),
        (replace(GOOD, inputs=()), [], "needs an input"),
        (replace(GOOD, outputs=()), [SPENT], "needs an input and an output"),
        (replace(GOOD, inputs=GOOD.inputs * 2), [SPENT, SPENT], "twice"),
        (
            replace(GOOD, inputs=(replace(GOOD.inputs[0], outpoint=OutPoint("00" * 32, 0)),)),
            [SPENT],
            "coinbase",
        ),
        (GOOD, [TxOut(Sats(8_999), SPENT.script_pubkey)], "pays out more"),
        (GOOD, [TxOut(Sats(10_000), b"\x51" * 10_001)], "too long"),
        (
            replace(GOOD, outputs=(TxOut(MAX_MONEY, b""), TxOut(MAX_MONEY, b""))),
            [TxOut(MAX_MONEY, SPENT.script_pubkey)],
            "pays out more",
        ),
        # The engine's own verdicts: a script of no bytes, and an empty signature.
        (GOOD, [TxOut(Sats(10_000), b"")], "."),
        (
            replace(GOOD, inputs=(replace(GOOD.inputs[0], witness=(b"", b"", ONE_KEY)),)),
            [TxOut(Sats(10_000), p2wsh(ONE_KEY))],
            ".",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(transaction, spent, reason):
    with pytest.raises(InvalidSpend, match=reason):
        verify_transaction(transaction, spent)


@pytest.fixture
def state(tmp_path):
    with closing(Chainstate(tmp_path / "engine")) as opened:
        yield opened


def next_block(state, *, nonce=0, transactions=(), parent=None, minted=0):
    return build_block(
        parent=parent or state.hash_at(state.height()),
        height=state.height() + 1,
        time=START + state.height(),
        transactions=transactions,
        fees=Sats(minted),
        extra_nonce=nonce,
    )


def without_work(raw):
    idle = (raw[:76] + nonce.to_bytes(4, "little") + raw[80:] for nonce in range(100))
    return next(each for each in idle if int.from_bytes(sha256d(each[:80]), "little") >> 255)


def test_a_block_that_breaks_a_rule_is_refused(state):
    """Also where the engine reports success: coins that are not there, or money from nothing."""
    for raw, words in (
        (next_block(state, transactions=(GOOD,)), "."),
        (next_block(state, minted=1), "."),
        (next_block(state, parent=b"\x01" * 32), "parent"),
        (next_block(state) + b"\x00", "bytes follow"),
        (without_work(next_block(state)), "."),
        *((raw, ".") for raw in (b"", b"\x00" * 80, b"\x00" * 200, b"\xff" * 4_000_001)),
    ):
        with pytest.raises(InvalidBlock, match=words):
            state.submit(raw)
    assert state.height() == 0
    raw = next_block(state)
    assert [state.submit(raw), state.height(), state.submit(raw)] == [True, 1, False]


def test_after_closing_nothing_is_asked_of_the_engine(tmp_path):
    state = Chainstate(tmp_path / "engine")
    state.close()
    state.close()
    with pytest.raises(ChainClosed):
        state.height()
    assert not (tmp_path / "engine").exists()


# Mainnet's block 100,000: its transactions and its root.
TXIDS = (
    "8c14f0db3df150123e6f3dbbf30f8b955a8249b62ac1d1ff16284aefa3d06d87",
    "fff2525b8931402dd09222c50775608f75787bd2b87e56995a7bdd30f79702c4",
    "6359f0868171b1d194cbee1af2f16ea598ae8fad666d9b012c8ed2b79a236ec4",
    "e9a66845e05d5abc0ad04ec80f774a7e585c6e8db975962d069a522137b80c1d",
)
ROOT = "f3e94742aca4b5ef85488dc37c06c3282295ffec960994b2c0d5ac2a25a95766"


def leaves(count: int) -> list[bytes]:
    return [sha256(number.to_bytes(2, "big")).digest() for number in range(count)]


def test_a_real_block_has_its_root():
    hashes = [bytes.fromhex(txid)[::-1] for txid in TXIDS]
    assert merkle_root(hashes)[::-1].hex() == ROOT
    assert unmistakable_root(hashes) == merkle_root(hashes)


@pytest.mark.parametrize(
    ("count", "repeated"), [(3, 1), (5, 1), (6, 2), (7, 1), (12, 4), (13, 1), (14, 2), (20, 4)]
)
def test_a_list_that_repeats_its_end_has_the_same_root_and_is_found_out(count, repeated):
    """CVE-2012-2459, on the lowest level and on those above."""
    whole = leaves(count)
    longer = whole + whole[-repeated:]
    assert merkle_root(longer) == merkle_root(whole)
    assert unmistakable_root(longer) is None


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
    return read_block(raw, BlockHeader.parse(raw).hash)


@pytest.mark.parametrize("payments", range(7))
def test_a_block_is_read_as_it_is(payments):
    raw = block_of(payments)
    assert [each.raw for each in read(raw).transactions] == list(map(bytes, pbk.Block(raw).transactions))


def test_a_block_with_missing_or_reordered_transactions_is_refused():
    raw = block_of(3)
    whole = tuple(each.parse() for each in read(raw).transactions)
    for others in ((), whole[:-1], whole[:2], whole[::-1], (*whole, whole[1])):
        with pytest.raises(ChainUnavailable, match="does not carry"):
            read(with_transactions(raw, others))


def test_other_bytes_are_not_the_block():
    raw = block_of(1)
    name = BlockHeader.parse(raw).hash
    for other in (b"", raw[:HEADER_BYTES], raw[:-1], raw[:HEADER_BYTES] + b"\xff"):
        with pytest.raises(ChainUnavailable):
            read_block(other, name)
    with pytest.raises(ChainUnavailable, match="are not those of"):
        read_block(raw, "00" * 32)
