"""The engine aborts the process on a wrong argument: each must be refused before it gets there."""

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
from tests.support.regtest import START, open_script

SPENT = TxOut(Sats(10_000), p2wsh(open_script(1)))
GOOD = Transaction(
    version=2,
    inputs=(TxIn(OutPoint("11" * 32, 0), 0xFFFFFFFD, b"", (open_script(1),)),),
    outputs=(TxOut(Sats(9_000), p2wsh(open_script(2))),),
    locktime=0,
)


def test_a_good_spend_passes():
    verify_transaction(GOOD, [SPENT])


def test_a_wrong_witness_names_its_input():
    second = TxIn(OutPoint("22" * 32, 0), 0xFFFFFFFD, b"", (open_script(2),))
    both = replace(GOOD, inputs=(GOOD.inputs[0], second))
    verify_transaction(both, [SPENT, TxOut(Sats(5), p2wsh(open_script(2)))])
    with pytest.raises(InvalidSpend) as caught:
        verify_transaction(both, [SPENT, TxOut(Sats(5), p2wsh(open_script(3)))])
    assert caught.value.input_index == 1


def bad_signature_script():
    return b"\x51\x21" + b"\x02" + b"\x11" * 32 + b"\x51\xae"


def test_an_empty_signature_is_refused_not_ignored():
    script = bad_signature_script()
    unsigned = replace(GOOD, inputs=(replace(GOOD.inputs[0], witness=(b"", b"", script)),))
    with pytest.raises(InvalidSpend):
        verify_transaction(unsigned, [TxOut(Sats(10_000), p2wsh(script))])


@pytest.mark.parametrize("spent", [[], [SPENT, SPENT]], ids=["too few", "too many"])
def test_the_number_of_spent_outputs_is_checked_first(spent):
    with pytest.raises(InvalidSpend, match="spent outputs"):
        verify_transaction(GOOD, spent)


@pytest.mark.parametrize(
    ("transaction", "spent", "reason"),
    [
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
    ],
)
def test_what_makes_no_sense_never_reaches_the_engine(transaction, spent, reason):
    with pytest.raises(InvalidSpend, match=reason):
        verify_transaction(transaction, spent)


def test_an_anyone_can_spend_script_of_no_bytes_is_still_judged_by_the_engine():
    with pytest.raises(InvalidSpend):
        verify_transaction(GOOD, [TxOut(Sats(10_000), b"")])


@pytest.fixture
def state(tmp_path):
    with Chainstate(tmp_path / "engine") as opened:
        yield opened


def next_block(state, *, nonce=0, transactions=()):
    return build_block(
        parent=state.hash_at(state.height()),
        height=state.height() + 1,
        time=START + state.height(),
        transactions=transactions,
        fees=Sats(0),
        extra_nonce=nonce,
    )


def test_a_block_extends_the_chain_once(state):
    raw = next_block(state)
    assert state.submit(raw) is True
    assert state.height() == 1
    assert state.submit(raw) is False


@pytest.mark.parametrize("raw", [b"", b"\x00" * 80, b"\x00" * 200, b"\xff" * 4_000_001])
def test_bytes_that_are_no_block_are_refused(state, raw):
    with pytest.raises(InvalidBlock):
        state.submit(raw)
    assert state.height() == 0


def test_trailing_bytes_are_refused(state):
    with pytest.raises(InvalidBlock, match="bytes follow"):
        state.submit(next_block(state) + b"\x00")


def test_an_unknown_parent_is_refused(state):
    raw = build_block(parent=b"\x01" * 32, height=1, time=START, transactions=(), fees=Sats(0), extra_nonce=0)
    with pytest.raises(InvalidBlock, match="parent"):
        state.submit(raw)


def test_a_block_that_spends_what_is_not_there_is_refused_though_the_engine_reports_success(state):
    with pytest.raises(InvalidBlock):
        state.submit(next_block(state, transactions=(GOOD,)))
    assert state.height() == 0
    assert state.submit(next_block(state)) is True


def test_a_block_that_mints_too_much_is_refused(state):
    raw = build_block(
        parent=state.hash_at(0), height=1, time=START, transactions=(), fees=Sats(1), extra_nonce=0
    )
    with pytest.raises(InvalidBlock):
        state.submit(raw)


def test_a_block_without_its_work_is_refused(state):
    raw = next_block(state)
    for nonce in range(100):
        idle = raw[:76] + nonce.to_bytes(4, "little") + raw[80:]
        if int.from_bytes(sha256d(idle[:80]), "little") >> 255:
            break
    with pytest.raises(InvalidBlock):
        state.submit(idle)
    assert state.height() == 0


@pytest.mark.parametrize("height", [-1, 1, 10**9])
def test_a_height_outside_the_chain_is_refused(state, height):
    with pytest.raises(InvalidBlock):
        state.hash_at(height)


def test_after_closing_nothing_is_asked_of_the_engine(tmp_path):
    state = Chainstate(tmp_path / "engine")
    state.close()
    state.close()
    with pytest.raises(ChainClosed):
        state.height()
    assert not (tmp_path / "engine").exists()
