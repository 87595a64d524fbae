"""What the mempool takes and what it refuses, each with its stable code."""

from dataclasses import replace

import pytest

from custody.server.chain.backend import Accepted, AlreadyKnown, RefusalCode, Refused, Spend
from custody.server.chain.embedded.mining import MINER_SCRIPT, MINER_WITNESS_SCRIPT
from multisig.script import p2wsh
from multisig.transaction import OutPoint
from tests.support.regtest import coin_of, funded, open_script, spend

HERE = p2wsh(open_script(7))


@pytest.fixture
def coin(chain):
    return funded(chain, 1, 100_000)


def refusal(chain, transaction):
    outcome = chain.test_accept(transaction)
    assert isinstance(outcome, Refused)
    assert chain.broadcast(transaction) == outcome
    assert chain.transaction(transaction.txid) is None
    return outcome.code


def test_a_good_transaction_is_taken_and_then_known(chain, coin):
    transaction = spend(coin, 1, to=HERE)
    assert chain.test_accept(transaction) == Accepted(transaction.txid)
    assert chain.transaction(transaction.txid) is None
    assert chain.broadcast(transaction) == Accepted(transaction.txid)
    assert chain.broadcast(transaction) == AlreadyKnown(transaction.txid, confirmed=False)
    chain.mine(1)
    assert chain.broadcast(transaction) == AlreadyKnown(transaction.txid, confirmed=True)
    assert chain.transaction(transaction.txid).height == chain.tip().height


def test_an_invalid_script_is_refused(chain, coin):
    assert refusal(chain, spend(coin, 1, to=HERE, witness=(open_script(2),))) is RefusalCode.INVALID_SCRIPT


def test_a_second_spend_of_a_coin_is_refused(chain, coin):
    first = spend(coin, 1, to=HERE)
    chain.broadcast(first)
    assert refusal(chain, spend(coin, 1, to=HERE, fee=900)) is RefusalCode.CONFLICT
    assert chain.spender(coin.outpoint) == Spend(first.txid, None)
    chain.mine(1)
    assert refusal(chain, spend(coin, 1, to=HERE, fee=5_000)) is RefusalCode.MISSING_INPUTS
    assert chain.spender(coin.outpoint) == Spend(first.txid, chain.tip().height)


def test_a_coin_that_is_not_there_is_refused(chain, coin):
    elsewhere = replace(coin, outpoint=OutPoint("ab" * 32, 0))
    assert refusal(chain, spend(elsewhere, 1, to=HERE)) is RefusalCode.MISSING_INPUTS


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"fee": 50}, RefusalCode.FEE_TOO_LOW),
        ({"fee": 99_000_000}, RefusalCode.FEE_TOO_HIGH),
        ({"fee": -1}, RefusalCode.MALFORMED),
        ({"locktime": 10_000}, RefusalCode.NON_FINAL),
        ({"locktime": 4_000_000_000}, RefusalCode.NON_FINAL),
        ({"sequence": 5}, RefusalCode.NON_FINAL),
    ],
)
def test_relay_rules(chain, changes, code):
    rich = funded(chain, 1, 100_000_000)
    assert refusal(chain, spend(rich, 1, to=HERE, **changes)) is code


def test_a_young_coinbase_cannot_be_spent(chain):
    chain.mine(99)
    oldest = chain.outputs_to([MINER_SCRIPT])[0]
    young = spend(oldest, 0, to=HERE, fee=1_000, witness=(MINER_WITNESS_SCRIPT,))
    assert refusal(chain, young) is RefusalCode.IMMATURE
    chain.mine(1)
    assert chain.broadcast(young) == Accepted(young.txid)


def test_a_lock_time_at_the_tip_is_final(chain, coin):
    transaction = spend(coin, 1, to=HERE, locktime=chain.tip().height)
    assert chain.broadcast(transaction) == Accepted(transaction.txid)
    chain.mine(1)
    assert chain.transaction(transaction.txid).height == chain.tip().height


def test_a_child_of_an_unconfirmed_parent_is_taken_and_mined_after_it(chain, coin):
    parent = spend(coin, 1, to=HERE)
    chain.broadcast(parent)
    child = spend(coin_of(chain, parent.txid, HERE), 7, to=p2wsh(open_script(8)))
    assert chain.broadcast(child) == Accepted(child.txid)
    chain.mine(1)
    assert chain.transaction(child.txid).height == chain.transaction(parent.txid).height == chain.tip().height


def test_a_block_that_spends_the_coin_another_way_empties_the_mempool_of_it_and_its_children(chain, coin):
    parent = spend(coin, 1, to=HERE)
    chain.broadcast(parent)
    child = spend(coin_of(chain, parent.txid, HERE), 7, to=p2wsh(open_script(8)))
    chain.broadcast(child)
    rival = spend(coin, 1, to=p2wsh(open_script(9)))
    chain.mine_block([rival])
    assert chain.transaction(parent.txid) is None
    assert chain.transaction(child.txid) is None
    assert chain.spender(coin.outpoint).txid == rival.txid
