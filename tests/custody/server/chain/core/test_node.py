"""Only the right, synchronised node is believed, and its answers are checked."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from custody.server.chain.backend import BroadcastRefused, RefusalCode
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from multisig.script import p2wsh
from multisig.transaction import OutPoint
from multisig.units import FeeRate
from tests.support.chains import confirmed_coin
from tests.support.fake_bitcoind import Refusal
from tests.support.regtest import open_output, open_script, spend

SCRIPT = open_output(1)


def every_question(backend, payment):
    return (
        backend.tip,
        lambda: backend.block_at(0),
        lambda: backend.outputs_to([SCRIPT]),
        lambda: backend.transaction("ab" * 32),
        lambda: backend.broadcast(payment),
        lambda: backend.fee_estimate(6),
        backend.least_fee_rate,
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chain": "main"}, "serves another chain than regtest"),
        ({"chain": "test"}, "serves another chain than regtest"),
        ({"chain": None}, "serves another chain than regtest"),
        ({"fetching": True}, "still fetching the chain"),
        ({"headers_ahead": 4}, "It catches up"),
        ({"pruned": True}, "prune=0"),
        ({"indexes": {"basic block filter index": True}}, "has no txindex. Run it with txindex=1"),
        ({"indexes": {"txindex": True}}, "blockfilterindex=1"),
        ({"indexes": {"txindex": False, "basic block filter index": True}}, "still building its txindex"),
        ({"indexes": {"txindex": True, "basic block filter index": False}}, "still building its basic block"),
    ],
    ids=lambda value: None if isinstance(value, str) else ",".join(value),
)
def test_whatever_is_asked_the_node_must_be_the_right_one_and_up_to_date(rig, faults, changes, words):
    """A node that was exchanged between two questions is noticed at the second."""
    coin, number = confirmed_coin(rig)
    payment = spend(coin, number, to=SCRIPT)
    vars(faults).update(changes)
    for ask in every_question(rig.backend, payment):
        with pytest.raises(ChainUnavailable, match=words):
            ask()
    assert rig.chain.transaction(payment.txid) is None


def test_the_configured_chain_decides_and_nothing_is_inferred(rig, faults):
    mainnet = rig.node.connect(Network.MAINNET)
    with pytest.raises(ChainUnavailable, match="mainnet node serves another chain than main"):
        mainnet.tip()
    faults.chain = "main"
    assert mainnet.tip() == rig.chain.tip()
    assert mainnet.network is Network.MAINNET
    mainnet.close()


def test_a_block_that_makes_no_sense_is_no_answer(rig, faults):
    for method, answer in (
        ("getblockhash", "00"),
        ("getblockhash", "AB" * 32),
        ("getblockhash", None),
        ("getblockheader", {"height": "1", "time": 1}),
        ("getblockheader", {"height": 1, "time": -1}),
        ("getblockheader", {"height": 2, "time": 1}),
        ("getblockheader", []),
    ):
        faults.instead = {method: lambda *_, answer=answer: answer}
        with pytest.raises(ChainUnavailable):
            rig.backend.block_at(1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[:-2],
        lambda raw: raw[:160] + "00" + raw[162:],
        lambda raw: "zz" + raw[2:],
        lambda raw: "01" + raw[2:],
        lambda raw: None,
        lambda raw: "",
    ],
    ids=["cut short", "other body", "no hexadecimal", "other header", "null", "empty"],
)
def test_a_block_is_believed_as_far_as_it_hangs_together(rig, faults, spoil):
    true = rig.node.do_getblock
    faults.instead["getblock"] = lambda *asked: spoil(true(*asked))
    with pytest.raises(ChainUnavailable):
        rig.backend.outputs_to([SCRIPT])
    del faults.instead["getblock"]
    assert rig.backend.outputs_to([SCRIPT]) == ()


def test_a_block_whose_header_does_not_commit_to_its_transactions_is_refused(rig, faults):
    """The header is the true one; an output of the coinbase pays another script."""
    script = p2wsh(rig.coinbase_script(1))
    true = rig.node.do_getblock

    def swap(*asked):
        return true(*asked).replace(script.hex(), SCRIPT.hex())

    faults.instead["getblock"] = swap
    with pytest.raises(ChainUnavailable, match="commits to"):
        rig.backend.outputs_to([SCRIPT])


def test_a_transaction_must_be_the_one_asked_for(rig, faults):
    coin, _ = confirmed_coin(rig)
    other = rig.chain.transaction(rig.fund(rig.fresh(), 10_000)).transaction
    faults.instead["getrawtransaction"] = lambda *_: {"hex": other.serialize().hex()}
    with pytest.raises(ChainUnavailable, match="another transaction"):
        rig.backend.transaction(coin.outpoint.txid)


def test_a_transaction_of_a_branch_that_lost_is_unknown(rig, faults):
    coin, _ = confirmed_coin(rig)
    found = rig.node.do_getrawtransaction(coin.outpoint.txid, 1)
    faults.instead["getrawtransaction"] = lambda *_: found | {"confirmations": 0}
    assert rig.backend.transaction(coin.outpoint.txid) is None


def refuse_with(faults, code, message):
    def refuse(*_):
        raise Refusal(code, message)

    faults.instead["sendrawtransaction"] = refuse


def test_a_reason_of_the_nodes_own_is_policy_in_its_words(rig, faults):
    coin, number = confirmed_coin(rig)
    refuse_with(faults, -26, "datacarrier\n" + "x" * 500)
    refused = rig.backend.broadcast(spend(coin, number, to=SCRIPT))
    assert (refused.code, refused.reason[:12]) == (RefusalCode.POLICY, "datacarrier ")
    assert len(refused.reason) <= 200


FLAG = "mempool-script-verify-flag-failed (Using non-compressed keys in segwit)"
WRONG = (open_script(100),)


@pytest.mark.parametrize(
    ("code", "message", "witness", "expected"),
    [
        (-26, "dust, tx with dust output must be 0-fee", None, RefusalCode.POLICY),
        (-26, "mempool full", None, RefusalCode.POLICY),
        (
            -25,
            "Unspendable output exceeds maximum configured by user (maxburnamount)",
            None,
            RefusalCode.POLICY,
        ),
        (-25, "Fee exceeds maximum configured by user (e.g. -maxtxfee)", None, RefusalCode.FEE_TOO_HIGH),
        (-26, "txn-mempool-conflict", None, RefusalCode.CONFLICT),
        (-26, FLAG, WRONG, RefusalCode.INVALID_SCRIPT),
        # Its coins would be free, the payment made anew, and this one could still be mined.
        (-26, FLAG, None, RefusalCode.POLICY),
    ],
)
def test_a_script_that_only_the_nodes_own_rules_forbid_is_no_final_refusal(
    rig, faults, code, message, witness, expected
):
    """Nor is whatever else may pass."""
    coin, number = confirmed_coin(rig)
    payment = spend(coin, number, to=SCRIPT, witness=witness)
    refuse_with(faults, code, message)
    assert rig.backend.broadcast(payment) == BroadcastRefused(payment.txid, expected, message)


def test_a_script_is_not_judged_without_the_coin_behind_it(rig, faults):
    coin, number = confirmed_coin(rig)
    payment = spend(replace(coin, outpoint=OutPoint("ab" * 32, 0)), number, to=SCRIPT)
    refuse_with(faults, -26, FLAG)
    with pytest.raises(ChainUnavailable, match="does not answer getrawtransaction"):
        rig.backend.broadcast(payment)


def test_a_txid_that_is_not_ours_is_no_success(rig, faults):
    coin, number = confirmed_coin(rig)
    faults.instead["sendrawtransaction"] = lambda *_: "ab" * 32
    with pytest.raises(ChainUnavailable, match="sendrawtransaction"):
        rig.backend.broadcast(spend(coin, number, to=SCRIPT))


@pytest.mark.parametrize(
    ("feerate", "expected"),
    [
        (0.000001, FeeRate(100)),
        (0, FeeRate(0)),
        *((feerate, ChainUnavailable) for feerate in (-1, "0.1", None, True, float("nan"))),
    ],
)
def test_the_nodes_own_minimum_is_read_exactly_and_nonsense_is_no_answer(rig, faults, feerate, expected):
    faults.instead["getmempoolinfo"] = lambda *_: {"mempoolminfee": feerate}
    with pytest.raises(expected) if expected is ChainUnavailable else nullcontext():
        assert rig.backend.least_fee_rate() == expected


@pytest.mark.parametrize(
    ("feerate", "expected"),
    [
        (0.00001234, FeeRate(1_234)),
        (0.5, FeeRate(50_000_000)),
        *((feerate, None) for feerate in (0, 0.000000001, None)),
        *((feerate, ChainUnavailable) for feerate in (-1, 1e30, "0.1", True, [], float("inf"), float("nan"))),
    ],
)
def test_an_estimate_is_read_exactly_and_one_that_makes_no_sense_is_no_answer(rig, faults, feerate, expected):
    faults.instead["estimatesmartfee"] = lambda *_: {"blocks": 6, "feerate": feerate}
    with pytest.raises(expected) if expected is ChainUnavailable else nullcontext():
        assert rig.backend.fee_estimate(6) == expected
