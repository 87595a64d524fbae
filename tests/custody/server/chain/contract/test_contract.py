"""What every chain backend does: blocks and the data in them, outputs and their spends, what it takes and how
it refuses, and its network, threads and failures.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    BlockRef,
    BroadcastRefused,
    ChainTransaction,
    FoundOutput,
    RefusalCode,
    SpendingTransaction,
)
from custody.server.errors import ChainUnavailable
from multisig.script import op_return_script, p2wsh
from multisig.transaction import OutPoint, TxIn, TxOut
from multisig.units import FeeRate, Sats
from tests.support.chains import confirmed_coin
from tests.support.regtest import coin_of, open_output, open_script, spend

PREFIX = b"CPT"
GENESIS = BlockRef(0, "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206", 1_296_688_602)


def carrying(rig, data, amount=100_000):
    """A payment of a confirmed coin that also pushes data, and the script of that coin."""
    coin, number = confirmed_coin(rig, amount)
    plain = spend(coin, number, to=open_output(rig.fresh()))
    outputs = (*plain.outputs, TxOut(Sats(0), op_return_script(data)))
    return replace(plain, outputs=outputs), coin.script_pubkey


def test_a_block_names_itself_and_its_parent_and_outside_the_chain_there_is_none(rig):
    before, block = rig.mine(2, empty=True)
    for height in (block.height + 1, block.height + 1_000_000, -1):
        assert rig.backend.block_at(height) is None
        assert rig.backend.data_at(height, PREFIX) is None
    assert rig.backend.block_at(0) == GENESIS
    found = rig.backend.data_at(block.height, PREFIX)
    assert (found.ref, found.previous, found.transactions) == (block, before.hash, ())


def test_what_carries_such_data_stands_there_in_order_with_its_caller(rig):
    """Also a caller that was made in the same block."""
    first, caller_of_first = carrying(rig, b"CPT one")
    other, _ = carrying(rig, b"other data")
    second, caller_of_second = carrying(rig, b"CPT two")
    coin, number = confirmed_coin(rig)
    between = rig.fresh()
    parent = spend(coin, number, to=open_output(between))
    child = replace(
        second,
        inputs=(TxIn(OutPoint(parent.txid, 0), 0xFFFFFFFD, b"", (open_script(between),)),),
        outputs=(TxOut(Sats(1_000), parent.outputs[0].script_pubkey), second.outputs[-1]),
    )
    block = rig.mine_block([first, other, second, parent, child])
    found = rig.backend.data_at(block.height, PREFIX).transactions
    assert [(one.position, one.transaction.txid, one.caller) for one in found] == [
        (1, first.txid, caller_of_first),
        (3, second.txid, caller_of_second),
        (5, child.txid, parent.outputs[0].script_pubkey),
    ]


def test_p35_a_longer_branch_takes_the_place_of_the_old_blocks(rig):
    carrier, _ = carrying(rig, b"CPT gone")
    before, gone = rig.backend.tip(), rig.mine_block([carrier])
    rig.mine(3)
    branch = rig.reorganise(4, 5)
    assert rig.backend.tip() == branch[-1]
    heights = range(before.height, branch[-1].height + 1)
    assert tuple(map(rig.backend.block_at, heights)) == (before, *branch)
    found = rig.backend.data_at(gone.height, PREFIX)
    assert (found.ref, found.transactions) == (branch[0], ())


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


def test_an_estimate_is_a_rate_or_none(rig):
    rig.mine()
    for target in (1, 6, 144, 1_008, 100_000):
        rate = rig.backend.fee_estimate(target)
        assert rate is None or (isinstance(rate, FeeRate) and rate.sat_per_kvb > 0)


def test_what_pays_the_least_rate_is_taken_and_what_pays_less_is_not(rig):
    least = rig.backend.least_fee_rate()
    if least is None:
        return
    coin, number = confirmed_coin(rig)
    away = open_output(rig.fresh())
    enough = least.fee_for(spend(coin, number, to=away).vsize)
    assert refusal(rig, spend(coin, number, to=away, fee=enough - 1)) is RefusalCode.FEE_TOO_LOW
    exact = spend(coin, number, to=away, fee=enough)
    assert rig.backend.broadcast(exact) == Accepted(exact.txid)


def test_without_a_server_every_call_is_unavailable_and_later_works_again(rig):
    coin, number = confirmed_coin(rig)
    ours = [open_output(number)]
    payment = spend(coin, number, to=open_output(rig.fresh()))
    tip = rig.backend.tip()
    with rig.down():
        for ask in (
            rig.backend.tip,
            lambda: rig.backend.block_at(tip.height),
            lambda: rig.backend.outputs_to(ours),
            lambda: rig.backend.transaction(coin.outpoint.txid),
            lambda: rig.backend.broadcast(payment),
        ):
            with pytest.raises(ChainUnavailable):
                ask()
    assert rig.backend.tip() == tip
    assert rig.backend.outputs_to(ours) == (coin,)


def test_several_threads_ask_at_once_while_the_chain_moves(rig):
    coin, number = confirmed_coin(rig)
    ours = [open_output(number)]

    def ask(_turn):
        tip = rig.backend.tip()
        assert rig.backend.block_at(0) is not None
        assert rig.backend.transaction(coin.outpoint.txid).block == coin.block
        return tip.height, rig.backend.outputs_to(ours)

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask, turn) for turn in range(16)]
        mined = [rig.mine()[0] for _ in range(4)]
        answers = [each.result() for each in asked]
    assert all(found == (coin,) for _, found in answers)
    assert rig.backend.tip() == mined[-1]
