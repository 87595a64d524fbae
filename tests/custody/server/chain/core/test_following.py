"""What the backend caches between two looks, and how it follows a moving chain."""

import pytest

from custody.server.chain.backend import SpendingTransaction
from custody.server.chain.core import history
from custody.server.errors import ChainUnavailable
from tests.support.chains import confirmed_coin
from tests.support.regtest import coin_of, open_output, spend


def asked(rig, method):
    """How often the node was asked since the last call."""
    count = rig.node.asked.count(method)
    rig.node.asked.clear()
    return count


def test_a_new_script_is_read_from_the_beginning_and_then_followed_with_the_others(rig):
    first, number = confirmed_coin(rig)
    other, unknown = confirmed_coin(rig)
    assert rig.backend.outputs_to([open_output(number)]) == (first,)
    assert set(rig.backend.outputs_to([open_output(number), open_output(unknown)])) == {first, other}
    asked(rig, "getblock")
    rig.mine()
    assert set(rig.backend.outputs_to([open_output(number), open_output(unknown)])) == {first, other}
    assert asked(rig, "getblock") == 1


def test_below_the_first_height_nothing_is_looked_for(rig):
    coin, number = confirmed_coin(rig)
    rig.mine(40)
    later, other = confirmed_coin(rig)
    young = rig.node.connect(first_height=coin.block.height + 1)
    assert young.outputs_to([open_output(number), open_output(other)]) == (later,)
    young.close()


def test_a_first_height_that_is_none_yet_is_no_empty_wallet(rig):
    """A digit too many, and for years no deposit would be seen."""
    _, number = confirmed_coin(rig)
    ahead = rig.node.connect(first_height=rig.backend.tip().height + 1)
    with pytest.raises(ChainUnavailable, match="FIRST_HEIGHT"):
        ahead.outputs_to([open_output(number)])
    rig.mine()
    assert ahead.outputs_to([open_output(number)]) == ()
    ahead.close()


def test_a_chain_that_became_shorter_is_followed_back(rig, faults):
    """A node whose operator invalidated a block, or that was started again from an older copy."""
    coin, number = confirmed_coin(rig)
    assert rig.backend.outputs_to([open_output(number)]) == (coin,)
    before = rig.chain.block_at(coin.block.height - 1)
    info, true = rig.node.do_getblockchaininfo(), rig.node.do_getblockhash

    def shorter(height):
        return true(height if height < coin.block.height else 10**6)

    shown = {"blocks": before.height, "bestblockhash": before.hash, "time": before.time}
    faults.instead["getblockchaininfo"] = lambda: info | shown
    faults.instead["getblockhash"] = shorter
    assert rig.backend.outputs_to([open_output(number)]) == ()
    faults.instead.clear()
    assert rig.backend.outputs_to([open_output(number)]) == (coin,)


def test_the_whole_answer_is_of_one_tip(rig, faults):
    """The block comes after the blocks were read and before the mempool is: the payment is in neither."""
    number = rig.fresh()
    rig.backend.outputs_to([open_output(number)])
    txid = rig.fund(number, 50_000)
    mined = []
    faults.before["getrawmempool"] = lambda: mined.extend(rig.mine())
    found = coin_of(rig.backend, txid, open_output(number))
    assert [found.block] == mined


@pytest.mark.parametrize("method", ["getrawmempool", "gettxspendingprevout", "getblock", "getrawtransaction"])
def test_a_reorganisation_in_the_middle_of_a_look(rig, faults, method):
    coin, number = confirmed_coin(rig)
    rig.backend.outputs_to([open_output(number)])
    rig.mine()
    rig.fund(rig.fresh(), 20_000)
    branches = []
    faults.before[method] = lambda: branches.extend(rig.reorganise(2, 3))
    found = coin_of(rig.backend, coin.outpoint.txid, open_output(number))
    assert branches
    assert found.block is None
    (block,) = rig.mine()
    assert coin_of(rig.backend, coin.outpoint.txid, open_output(number)).block == block


def test_a_chain_that_moves_at_every_look_is_unavailable_and_then_is_not(rig, faults):
    coin, number = confirmed_coin(rig)
    true = rig.node.do_getrawmempool
    faults.instead["getrawmempool"] = lambda: rig.mine() and true()
    with pytest.raises(ChainUnavailable, match="changed at every try"):
        rig.backend.outputs_to([open_output(number)])
    faults.instead.clear()
    assert rig.backend.outputs_to([open_output(number)]) == (coin,)


def test_filters_that_are_not_built_yet_are_waited_for(rig, faults):
    """The node passes over them in silence: a deposit would be missed for ever."""
    _, number = confirmed_coin(rig)
    rig.mine(20)
    late, other = confirmed_coin(rig)
    rig.mine(20)
    new = rig.node.connect()
    faults.index_behind = 35
    with pytest.raises(ChainUnavailable, match="filter index is behind"):
        new.outputs_to([open_output(number), open_output(other)])
    faults.index_behind = 0
    assert late in new.outputs_to([open_output(number), open_output(other)])
    new.close()


def test_a_scan_that_was_broken_off_is_no_answer(rig, faults):
    """Nor is one that tells of a block outside of what it was asked."""
    coin, number = confirmed_coin(rig)
    rig.mine(60)
    true = rig.node.do_scanblocks
    for changes in (
        {"completed": False},
        {"completed": None},
        {"to_height": 3},
        {"from_height": 3},
        {"relevant_blocks": ["00"]},
        {"relevant_blocks": [rig.chain.tip().hash]},
    ):
        faults.instead["scanblocks"] = lambda *asked, changes=changes: true(*asked) | changes
        with pytest.raises(ChainUnavailable):
            rig.backend.outputs_to([open_output(number)])
    faults.instead.clear()
    assert rig.backend.outputs_to([open_output(number)]) == (coin,)


def test_what_one_look_cannot_read_the_next_one_goes_on_with(rig, monkeypatch):
    coin, number = confirmed_coin(rig)
    payment = spend(coin, number, to=open_output(rig.fresh()))
    rig.send(payment)
    rig.mine(95)
    monkeypatch.setattr(history, "BLOCKS_PER_SCAN", 20)
    monkeypatch.setattr(history, "LOOK_SECONDS", 2)
    ticks = iter(range(10**6))
    new = rig.node.connect()
    monkeypatch.setattr(new._follower, "_clock", lambda: next(ticks))
    for _ in range(3):
        with pytest.raises(ChainUnavailable, match="still being read: block"):
            new.outputs_to([open_output(number)])
    assert coin.block.height - 20 < new._follower._backfill.next <= coin.block.height + 95
    monkeypatch.undo()
    (found,) = new.outputs_to([open_output(number)])
    assert found.spent == SpendingTransaction(payment.txid, rig.chain.block_at(coin.block.height + 1))
    new.close()


# The mempool


def test_a_script_that_comes_later_is_found_among_what_was_examined_before(rig):
    early, late = rig.fresh(), rig.fresh()
    rig.fund(rig.fresh(), 10_000)
    txid = rig.fund(late, 10_000)
    assert rig.backend.outputs_to([open_output(early)]) == ()
    asked(rig, "getrawtransaction")
    assert coin_of(rig.backend, txid, open_output(late)).block is None
    assert asked(rig, "getrawtransaction") == 1


def test_a_transaction_that_leaves_while_it_is_fetched_is_no_fault(rig, faults):
    number = rig.fresh()
    txid = rig.fund(number, 10_000)
    faults.before["getrawtransaction"] = rig.forget
    assert rig.backend.outputs_to([open_output(number)]) == ()
    assert txid not in rig.backend._mempool._examined


def test_a_full_mempool_is_read_in_several_looks(rig, monkeypatch):
    numbers = [rig.fresh() for _ in range(5)]
    for number in numbers:
        rig.fund(number, 10_000)
    ours = [open_output(number) for number in numbers]
    monkeypatch.setattr(history, "TRANSACTIONS_PER_CALL", 2)
    monkeypatch.setattr(history, "FIRST_READ_SECONDS", 1)
    ticks = iter(range(10**6))
    monkeypatch.setattr(rig.backend._mempool, "_clock", lambda: next(ticks))
    for _ in range(2):
        with pytest.raises(ChainUnavailable, match="mempool is still being read"):
            rig.backend.outputs_to(ours)
    assert len(rig.backend.outputs_to(ours)) == 5


def test_a_large_mempool_is_listed_every_few_seconds_and_at_once_where_it_matters(rig, monkeypatch):
    monkeypatch.setattr(history, "MANY", 1)
    now = [0.0]
    monkeypatch.setattr(rig.backend._mempool, "_clock", lambda: now[0])
    number, other = rig.fresh(), rig.fresh()
    txid = rig.fund(number, 10_000)
    assert coin_of(rig.backend, txid, open_output(number)).block is None
    later = rig.fund(number, 20_000)
    assert {coin.outpoint.txid for coin in rig.backend.outputs_to([open_output(number)])} == {txid}
    now[0] = 5.0
    assert {coin.outpoint.txid for coin in rig.backend.outputs_to([open_output(number)])} == {txid, later}
    third = rig.fund(other, 10_000)
    assert coin_of(rig.backend, third, open_output(other)).block is None
    (block,) = rig.mine()
    found = rig.backend.outputs_to([open_output(number), open_output(other)])
    assert {(coin.outpoint.txid, coin.block) for coin in found} == {
        (each, block) for each in (txid, later, third)
    }
