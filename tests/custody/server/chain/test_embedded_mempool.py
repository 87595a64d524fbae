"""What the mempool takes and what it refuses, each with its stable code."""

from dataclasses import replace

import pytest

from custody.server.chain.backend import Accepted, AlreadyKnown, RefusalCode, Refused, Spend
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.embedded.mining import MINER_SCRIPT, MINER_WITNESS_SCRIPT
from multisig.script import p2wsh
from multisig.transaction import OutPoint, Transaction
from tests.support.regtest import coin_of, funded, open_script, spend

HERE = p2wsh(open_script(7))


@pytest.fixture
def paid_coin(chain):
    return funded(chain, 1, 100_000)


def refusal(chain, transaction):
    outcome = chain.test_accept(transaction)
    assert isinstance(outcome, Refused)
    assert chain.broadcast(transaction) == outcome
    assert chain.transaction(transaction.txid) is None
    return outcome.code


def test_a_good_transaction_is_taken_and_then_known(chain, paid_coin):
    transaction = spend(paid_coin, 1, to=HERE)
    assert chain.test_accept(transaction) == Accepted(transaction.txid)
    assert chain.transaction(transaction.txid) is None
    assert chain.broadcast(transaction) == Accepted(transaction.txid)
    assert chain.broadcast(transaction) == AlreadyKnown(transaction.txid, confirmed=False)
    chain.mine(1)
    assert chain.broadcast(transaction) == AlreadyKnown(transaction.txid, confirmed=True)
    assert chain.transaction(transaction.txid).height == chain.tip().height


def test_an_invalid_script_is_refused(chain, paid_coin):
    assert (
        refusal(chain, spend(paid_coin, 1, to=HERE, witness=(open_script(2),))) is RefusalCode.INVALID_SCRIPT
    )


def test_a_second_spend_of_a_coin_is_refused(chain, paid_coin):
    first = spend(paid_coin, 1, to=HERE)
    chain.broadcast(first)
    assert refusal(chain, spend(paid_coin, 1, to=HERE, fee=900)) is RefusalCode.CONFLICT
    assert chain.spender(paid_coin.outpoint) == Spend(first.txid, None)
    chain.mine(1)
    assert refusal(chain, spend(paid_coin, 1, to=HERE, fee=5_000)) is RefusalCode.MISSING_INPUTS
    assert chain.spender(paid_coin.outpoint) == Spend(first.txid, chain.tip().height)


def test_a_coin_that_is_not_there_is_refused(chain, paid_coin):
    elsewhere = replace(paid_coin, outpoint=OutPoint("ab" * 32, 0))
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


def test_a_lock_time_at_the_tip_is_final(chain, paid_coin):
    transaction = spend(paid_coin, 1, to=HERE, locktime=chain.tip().height)
    assert chain.broadcast(transaction) == Accepted(transaction.txid)
    chain.mine(1)
    assert chain.transaction(transaction.txid).height == chain.tip().height


def test_a_child_of_an_unconfirmed_parent_is_taken_and_mined_after_it(chain, paid_coin):
    parent = spend(paid_coin, 1, to=HERE)
    chain.broadcast(parent)
    child = spend(coin_of(chain, parent.txid, HERE), 7, to=p2wsh(open_script(8)))
    assert chain.broadcast(child) == Accepted(child.txid)
    chain.mine(1)
    assert chain.transaction(child.txid).height == chain.transaction(parent.txid).height == chain.tip().height


def test_a_block_that_spends_the_coin_another_way_empties_the_mempool_of_it_and_its_children(
    chain, paid_coin
):
    parent = spend(paid_coin, 1, to=HERE)
    chain.broadcast(parent)
    child = spend(coin_of(chain, parent.txid, HERE), 7, to=p2wsh(open_script(8)))
    chain.broadcast(child)
    rival = spend(paid_coin, 1, to=p2wsh(open_script(9)))
    chain.mine_block([rival])
    assert chain.transaction(parent.txid) is None
    assert chain.transaction(child.txid) is None
    assert chain.spender(paid_coin.outpoint).txid == rival.txid


HERE, THERE = p2wsh(open_script(7)), p2wsh(open_script(8))


@pytest.fixture
def coin(chain):
    return funded(chain, 1, 100_000)


def taken(chain, transaction):
    assert chain.broadcast(transaction) == Accepted(transaction.txid)
    return transaction


def refused(chain, transaction):
    outcome = chain.broadcast(transaction)
    assert isinstance(outcome, Refused)
    assert outcome.code is RefusalCode.CONFLICT
    return outcome.reason


def both(one, other, *, fee):
    """Spends two open coins together."""
    parts = [spend(one, 1, to=HERE, fee=0), spend(other, 1, to=HERE, fee=fee)]
    return Transaction(2, (*parts[0].inputs, *parts[1].inputs), (*parts[0].outputs, *parts[1].outputs), 0)


def test_a_higher_fee_takes_the_place(chain, coin):
    first = taken(chain, spend(coin, 1, to=HERE))
    second = taken(chain, spend(coin, 1, to=HERE, fee=1_000 + first.vsize))
    assert chain.transaction(first.txid) is None
    assert chain.spender(coin.outpoint) == Spend(second.txid, None)
    chain.mine(1)
    assert chain.transaction(second.txid).height == chain.tip().height


def test_it_must_pay_for_its_own_way_too(chain, coin):
    first = taken(chain, spend(coin, 1, to=HERE))
    assert "insufficient fee" in refused(chain, spend(coin, 1, to=HERE, fee=999 + first.vsize))
    assert chain.transaction(first.txid) is not None


def test_it_must_pay_more_for_each_byte(chain, coin):
    other = funded(chain, 1, 100_000)
    taken(chain, spend(coin, 1, to=HERE, fee=10_000))
    assert "each byte" in refused(chain, both(coin, other, fee=10_500))
    taken(chain, both(coin, other, fee=30_000))


def test_one_that_does_not_signal_stays(chain, coin):
    taken(chain, spend(coin, 1, to=HERE, sequence=0xFFFFFFFE))
    assert "does not let itself" in refused(chain, spend(coin, 1, to=HERE, fee=50_000))


def test_whatever_hangs_on_it_leaves_too_and_is_paid_for(chain, coin):
    first = taken(chain, spend(coin, 1, to=HERE))
    child = taken(chain, spend(coin_of(chain, first.txid, HERE), 7, to=THERE, fee=20_000))
    assert "insufficient fee" in refused(chain, spend(coin, 1, to=THERE, fee=20_000))
    second = taken(chain, spend(coin, 1, to=THERE, fee=22_000))
    assert chain.transaction(child.txid) is None
    assert chain.spender(coin.outpoint) == Spend(second.txid, None)


def test_an_unconfirmed_coin_beside_the_replaced_one(chain):
    one, other = funded(chain, 1, 100_000), funded(chain, 1, 90_000)
    taken(chain, spend(one, 1, to=HERE))
    parent = taken(chain, spend(other, 1, to=p2wsh(open_script(1))))
    fresh = coin_of(chain, parent.txid, p2wsh(open_script(1)))
    assert "unconfirmed itself" in refused(chain, both(one, fresh, fee=50_000))


def test_it_cannot_hang_on_what_it_replaces(chain, coin):
    first = taken(chain, spend(coin, 1, to=p2wsh(open_script(1))))
    child = coin_of(chain, first.txid, p2wsh(open_script(1)))
    assert "unconfirmed itself" in refused(chain, both(coin, child, fee=90_000))


def test_the_newer_one_is_there_after_a_restart(tmp_path):
    with EmbeddedChain(tmp_path, clock=lambda: 1_748_822_400) as chain:
        coin = funded(chain, 1, 100_000)
        first = taken(chain, spend(coin, 1, to=HERE))
        second = taken(chain, spend(coin, 1, to=HERE, fee=5_000))
    with EmbeddedChain(tmp_path, clock=lambda: 1_748_822_400) as chain:
        assert chain.transaction(first.txid) is None
        assert chain.transaction(second.txid) is not None


def test_after_a_reorganisation_the_higher_fee_is_kept(chain, coin):
    first = spend(coin, 1, to=HERE)
    chain.mine_block([first])
    second = spend(coin, 1, to=HERE, fee=5_000)
    chain.reorganise(1, 2)
    assert chain.transaction(first.txid).height is None
    taken(chain, second)
    assert chain.transaction(first.txid) is None


def test_every_input_of_what_leaves_is_free_again(chain, coin):
    other = funded(chain, 1, 80_000)
    taken(chain, both(coin, other, fee=1_000))
    taken(chain, spend(coin, 1, to=HERE, fee=9_000))
    assert chain.spender(other.outpoint) is None
    taken(chain, spend(other, 1, to=HERE))
