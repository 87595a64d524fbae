"""The engine aborts the process on a wrong argument: each is refused before."""

from contextlib import closing
from dataclasses import replace

import pytest

from custody.server.chain.embedded.mining import build_block
from custody.server.chain.engine import (
    ChainClosed,
    Chainstate,
    InvalidBlock,
    InvalidSpend,
    verify_transaction,
)
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
