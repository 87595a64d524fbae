"""Outputs to our scripts and their spends: on the best chain, in the mempool, and gone."""

from dataclasses import replace

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    ChainTransaction,
    FoundOutput,
    RefusalCode,
    SpendingTransaction,
)
from multisig.script import p2wsh
from tests.support.chains import confirmed_coin
from tests.support.regtest import coin_of, open_output, spend


def test_a_coin_from_its_payment_to_its_spend(rig, here):
    """Looked up by its script, since a height, and by its transactions."""
    number = rig.fresh()
    ours = [open_output(number)]
    txid = rig.fund(number, 12_345)
    found = coin_of(rig.backend, txid, open_output(number))
    waiting = FoundOutput(found.outpoint, 12_345, open_output(number), None, coinbase=False, spent=None)
    assert found == waiting
    block = rig.mine(2)[0]
    coin = replace(waiting, block=block)
    assert rig.backend.outputs_to(ours) == rig.backend.outputs_to(ours, since_height=block.height) == (coin,)
    assert rig.backend.outputs_to(ours, since_height=block.height + 1) == ()

    next_number = rig.fresh()
    payment = spend(coin, number, to=open_output(next_number))
    assert rig.backend.broadcast(payment) == Accepted(payment.txid)
    assert rig.backend.transaction(payment.txid) == ChainTransaction(payment, None)
    assert rig.backend.broadcast(payment) == AlreadyKnown(payment.txid, confirmed=False)
    spent = replace(coin, spent=SpendingTransaction(payment.txid, None))
    assert rig.backend.outputs_to(ours, since_height=block.height + 1) == (spent,)
    assert coin_of(rig.backend, payment.txid, open_output(next_number)).block is None
    (block,) = rig.mine()
    spent = replace(coin, spent=SpendingTransaction(payment.txid, block))
    assert rig.backend.outputs_to(ours, since_height=block.height) == (spent,)
    assert rig.backend.outputs_to(ours, since_height=block.height + 1) == ()
    assert rig.backend.transaction(payment.txid) == ChainTransaction(payment, block)
    change = coin_of(rig.backend, payment.txid, open_output(next_number))
    assert change.block == block
    # It is known though its outputs are spent, too.
    rig.send(spend(change, next_number, to=here))
    rig.mine()
    assert rig.backend.broadcast(payment) == AlreadyKnown(payment.txid, confirmed=True)


def test_a_coinbase_is_told_as_one(rig):
    (block,) = rig.mine()
    found = rig.backend.outputs_to([p2wsh(rig.coinbase_script(block.height))], since_height=block.height)
    assert [coin.coinbase for coin in found if coin.block == block] == [True]


def test_what_a_branch_leaves_out_is_unconfirmed_again(rig, here):
    """The payment and, with the next branch, the deposit that it spends."""
    coin, number = confirmed_coin(rig)
    payment = spend(coin, number, to=here)
    rig.send(payment)
    rig.mine()
    assert coin_of(rig.backend, payment.txid, here).block is not None
    for depth, block in ((1, coin.block), (3, None)):
        rig.reorganise(depth, depth + 1)
        again = coin_of(rig.backend, coin.outpoint.txid, open_output(number))
        assert (again.block, again.spent) == (block, SpendingTransaction(payment.txid, None))
        assert coin_of(rig.backend, payment.txid, here).block is None
        assert rig.backend.transaction(payment.txid) == ChainTransaction(payment, None)
    (block,) = rig.mine()
    assert coin_of(rig.backend, coin.outpoint.txid, open_output(number)).block == block


def test_a_double_spend_in_a_branch_removes_the_first_for_good(rig, here):
    coin, number = confirmed_coin(rig)
    elsewhere = open_output(rig.fresh())
    first, rival = spend(coin, number, to=here), spend(coin, number, to=elsewhere)
    rig.send(first)
    rig.mine()
    assert coin_of(rig.backend, first.txid, here).block is not None
    branch = rig.reorganise(1, 2, [rival])
    assert rig.backend.outputs_to([here]) == ()
    spent = coin_of(rig.backend, coin.outpoint.txid, open_output(number)).spent
    assert spent == SpendingTransaction(rival.txid, branch[0])
    assert coin_of(rig.backend, rival.txid, elsewhere).block == branch[0]
    assert rig.backend.broadcast(first).code is RefusalCode.MISSING_INPUTS
    assert rig.backend.transaction(first.txid) is None


def test_what_the_mempool_forgot_is_gone_and_its_coins_are_free(rig, here):
    coin, number = confirmed_coin(rig)
    payment = spend(coin, number, to=here)
    rig.send(payment)
    assert coin_of(rig.backend, payment.txid, here).block is None
    rig.forget()
    assert rig.backend.outputs_to([here]) == ()
    assert coin_of(rig.backend, coin.outpoint.txid, open_output(number)).spent is None
    rig.send(payment)
    assert coin_of(rig.backend, payment.txid, here).block is None


def test_a_long_history_is_read_from_its_beginning(rig, here):
    coin, number = confirmed_coin(rig)
    payment = spend(coin, number, to=here)
    rig.send(payment)
    (block,) = rig.mine()
    rig.mine(60)
    found = {each.outpoint.txid: each for each in rig.backend.outputs_to([open_output(number), here])}
    assert found[coin.outpoint.txid].spent == SpendingTransaction(payment.txid, block)
    assert found[payment.txid].block == block
    assert rig.backend.outputs_to([open_output(number), here], since_height=block.height + 1) == ()
