"""Beyond the contract of all backends: replacements, and long chains of transactions."""

import pytest

from custody.server.chain.backend import Accepted, BroadcastRefused, RefusalCode, SpendingTransaction
from tests.support.regtest import coin_of, funded, open_address, open_output, spend

HERE = open_output(7)


@pytest.fixture
def coin(chain):
    return funded(chain, 1, 100_000)


def taken(chain, transaction):
    assert chain.broadcast(transaction) == Accepted(transaction.txid)
    return transaction


def refused(chain, transaction):
    outcome = chain.broadcast(transaction)
    assert isinstance(outcome, BroadcastRefused)
    assert outcome.code is RefusalCode.CONFLICT
    return outcome.reason


def test_a_higher_fee_takes_the_place_if_it_pays_for_its_own_way_too(chain, coin):
    first = taken(chain, spend(coin, 1, to=HERE))
    assert "insufficient fee" in refused(chain, spend(coin, 1, to=HERE, fee=999 + first.vsize))
    assert chain.transaction(first.txid) is not None
    second = taken(chain, spend(coin, 1, to=HERE, fee=1_000 + first.vsize))
    assert chain.transaction(first.txid) is None
    assert chain.spender(coin.outpoint) == SpendingTransaction(second.txid, None)
    chain.mine(1)
    assert chain.spender(coin.outpoint) == SpendingTransaction(second.txid, chain.tip())


def test_one_that_does_not_signal_stays(chain, coin):
    taken(chain, spend(coin, 1, to=HERE, sequence=0xFFFFFFFE))
    assert "does not signal" in refused(chain, spend(coin, 1, to=HERE, fee=50_000))


def test_it_takes_a_chain_of_25_and_as_many_children_as_a_node_does(chain):
    """Core's limits before release 31."""
    last = first = funded(chain, 1, 1_000_000)
    for _ in range(25):
        sent = taken(chain, spend(last, 1, to=open_output(1)))
        last = coin_of(chain, sent.txid, open_output(1))
    outcome = chain.broadcast(spend(last, 1, to=HERE))
    assert (outcome.code, outcome.reason) == (RefusalCode.POLICY, "too-long-mempool-chain")
    # What takes the place of the first one takes the whole chain away.
    second = taken(chain, spend(first, 1, to=open_output(1), fee=100_000))
    taken(chain, spend(coin_of(chain, second.txid, open_output(1)), 1, to=HERE))


def test_its_own_payments_wait_for_a_block_where_too_many_hang_together(chain):
    """The miner of a new chain has one coin."""
    before = chain.tip().height
    for _ in range(40):
        chain.fund(open_address(7), 10_000)
    assert len(chain.outputs_to([HERE])) == 40
    assert chain.tip().height >= before
