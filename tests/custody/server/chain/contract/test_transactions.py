"""Broadcasting a transaction, and the stable codes of refusals."""

from dataclasses import replace

from custody.server.chain.backend import (
    Accepted,
    BroadcastRefused,
    ChainTransaction,
    RefusalCode,
)
from multisig.script import p2wsh
from multisig.transaction import OutPoint
from tests.support.chains import confirmed_coin
from tests.support.regtest import coin_of, open_output, open_script, spend


def refusal(rig, transaction):
    """The refusal's code; nothing is sent."""
    sent = rig.backend.broadcast(transaction)
    assert isinstance(sent, BroadcastRefused)
    assert sent.txid == transaction.txid
    assert sent.reason
    assert rig.backend.transaction(transaction.txid) is None
    return sent.code


def test_25_that_hang_together_are_taken_by_every_node(rig, here):
    """`custody.server.proposals.choosing` counts on it."""
    coin, number = confirmed_coin(rig)
    for _ in range(24):
        second = rig.fresh()
        sent = spend(coin, number, to=open_output(second), fee=200)
        rig.send(sent)
        coin, number = coin_of(rig.backend, sent.txid, open_output(second)), second
    last = spend(coin, number, to=here, fee=200)
    assert rig.backend.broadcast(last) == Accepted(last.txid)
    (block,) = rig.mine()
    assert rig.backend.transaction(last.txid) == ChainTransaction(last, block)


def test_a_rival_that_pays_no_more_is_a_conflict(rig, here):
    coin, number = confirmed_coin(rig)
    rig.send(spend(coin, number, to=here, fee=2_000))
    assert refusal(rig, spend(coin, number, to=here, fee=1_000)) is RefusalCode.CONFLICT
    rig.mine()
    assert refusal(rig, spend(coin, number, to=here, fee=1_000)) is RefusalCode.MISSING_INPUTS


def test_relay_rules(rig, here):
    coin, number = confirmed_coin(rig, 100_000_000)
    for changes, code in (
        ({"fee": 0}, RefusalCode.FEE_TOO_LOW),
        ({"fee": 99_000_000}, RefusalCode.FEE_TOO_HIGH),
        ({"fee": -1}, RefusalCode.MALFORMED),
        ({"locktime": 400_000_000}, RefusalCode.NON_FINAL),
        ({"locktime": 4_000_000_000}, RefusalCode.NON_FINAL),
        ({"sequence": 5}, RefusalCode.NON_FINAL),
        ({"witness": (open_script(rig.fresh()),)}, RefusalCode.INVALID_SCRIPT),
    ):
        assert refusal(rig, spend(coin, number, to=here, **changes)) is code, changes
    nowhere = replace(coin, outpoint=OutPoint("ab" * 32, 0))
    assert refusal(rig, spend(nowhere, number, to=here)) is RefusalCode.MISSING_INPUTS
    at_the_tip = spend(coin, number, to=here, locktime=rig.backend.tip().height)
    assert rig.backend.broadcast(at_the_tip) == Accepted(at_the_tip.txid)


def test_a_young_coinbase_cannot_be_spent(rig, here):
    (block,) = rig.mine()
    behind = rig.coinbase_script(block.height)
    (young,) = (coin for coin in rig.backend.outputs_to([p2wsh(behind)]) if coin.block == block)
    early = spend(young, 0, to=here, fee=1_000, witness=(behind,))
    assert refusal(rig, early) is RefusalCode.IMMATURE
    rig.mine(99)
    assert rig.backend.broadcast(early) == Accepted(early.txid)
