"""The chain itself: mining, paying out, reorganising, and what survives a restart and a kill."""

import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from custody.server.chain.backend import Accepted
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.engine import InvalidBlock
from custody.server.domain.errors import ChainUnavailable
from multisig.errors import WrongNetwork
from multisig.script import p2wsh
from multisig.units import Sats
from tests.support.regtest import START, coin_of, funded, open_address, open_script, spend

HERE = p2wsh(open_script(7))
REGTEST_GENESIS = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"


def test_it_starts_at_regtests_genesis(chain):
    assert (chain.tip().height, chain.tip().hash) == (0, REGTEST_GENESIS)
    assert datetime.fromtimestamp(chain.tip().time, UTC).year == 2011


def test_mining_extends_the_chain_block_by_block(chain):
    mined = chain.mine(3)
    assert [block.height for block in mined] == [1, 2, 3]
    assert chain.tip() == mined[-1]
    assert [chain.block_at(height) for height in (1, 2, 3)] == list(mined)
    assert chain.block_at(4) is None
    assert chain.block_at(-1) is None


def test_block_times_follow_the_clock_and_never_the_median_backwards(chain, clock):
    assert chain.mine(1)[0].time == START
    clock.now = START - 86_400
    times = [block.time for block in chain.mine(13)]
    assert times == sorted(times)
    assert times[0] == START + 1


@pytest.mark.parametrize("count", [0, -1, 1_001])
def test_the_number_of_blocks_is_bounded(chain, count):
    with pytest.raises(ValueError, match="between 1 and"):
        chain.mine(count)


def test_fund_pays_exactly_and_waits_for_a_block(chain):
    txid = chain.fund(open_address(1), Sats(12_345))
    found = coin_of(chain, txid, p2wsh(open_script(1)))
    assert (found.amount, found.height, found.block_hash, found.spent) == (12_345, None, None, None)
    (block,) = chain.mine(1)
    confirmed = coin_of(chain, txid, p2wsh(open_script(1)))
    assert (confirmed.height, confirmed.block_hash) == (block.height, block.hash)


def test_fund_mines_as_much_as_a_large_payment_needs(chain):
    txid = chain.fund(open_address(1), Sats(120 * 100_000_000))
    chain.mine(1)
    assert coin_of(chain, txid, p2wsh(open_script(1))).amount == 120 * 100_000_000


def test_fund_refuses_an_address_of_another_network(chain):
    with pytest.raises(WrongNetwork):
        chain.fund("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", Sats(1_000))


def test_fund_refuses_dust(chain):
    with pytest.raises(ValueError, match="dust"):
        chain.fund(open_address(1), Sats(329))
    assert chain.tip().height == 0


def test_fund_says_so_when_the_chain_never_owns_that_much(chain):
    with pytest.raises(ValueError, match="does not own"):
        chain.fund(open_address(1), Sats(20_000 * 100_000_000))


def test_outputs_are_found_by_what_changed_since_a_height(chain):
    coin = funded(chain, 1, 100_000)
    chain.mine(2)
    script = p2wsh(open_script(1))
    assert chain.outputs_to([script], since_height=coin.height) == (coin,)
    assert chain.outputs_to([script], since_height=coin.height + 1) == ()
    chain.broadcast(spend(coin, 1, to=HERE))
    (spent,) = chain.outputs_to([script], since_height=coin.height + 1)
    assert spent.spent.height is None
    chain.mine(1)
    (mined,) = chain.outputs_to([script], since_height=chain.tip().height)
    assert mined.spent.height == chain.tip().height
    assert chain.outputs_to([script], since_height=chain.tip().height + 1) == ()


def test_a_longer_branch_wins_and_gives_its_transactions_back(chain):
    coin = funded(chain, 1, 100_000)
    transaction = spend(coin, 1, to=HERE)
    chain.broadcast(transaction)
    chain.mine(2)
    old_tip = chain.tip()
    branch = chain.reorganise(2, 3)
    assert chain.tip() == branch[-1]
    assert chain.tip().height == old_tip.height + 1
    assert chain.block_at(old_tip.height) != old_tip
    known = chain.transaction(transaction.txid)
    assert (known.height, known.block_hash) == (None, None)
    assert coin_of(chain, transaction.txid, HERE).height is None
    chain.mine(1)
    assert chain.transaction(transaction.txid).height == chain.tip().height


def test_a_branch_that_is_not_longer_changes_nothing(chain):
    chain.mine(3)
    tip = chain.tip()
    chain.reorganise(2, 2)
    assert chain.tip() == tip


def test_a_double_spend_in_a_branch_removes_the_first_for_good(chain):
    coin = funded(chain, 1, 100_000)
    first = spend(coin, 1, to=HERE)
    chain.broadcast(first)
    chain.mine(1)
    rival = spend(coin, 1, to=p2wsh(open_script(9)))
    chain.reorganise(1, 2, [rival])
    assert chain.transaction(first.txid) is None
    assert chain.outputs_to([HERE]) == ()
    assert chain.spender(coin.outpoint).txid == rival.txid


def test_a_deposit_that_a_branch_leaves_out_is_unconfirmed_again(chain):
    coin = funded(chain, 1, 100_000)
    chain.reorganise(1, 2)
    assert coin_of(chain, coin.outpoint.txid, coin.script_pubkey).height is None


def test_an_invalid_spend_cannot_be_mined(chain):
    coin = funded(chain, 1, 100_000)
    tip = chain.tip()
    with pytest.raises(InvalidBlock):
        chain.mine_block([spend(coin, 1, to=HERE, witness=(open_script(2),))])
    assert chain.tip() == tip
    assert chain.spender(coin.outpoint) is None
    chain.mine(1)


def test_everything_survives_a_restart(tmp_path, clock):
    with EmbeddedChain(tmp_path, clock=clock) as chain:
        coin = funded(chain, 1, 100_000)
        chain.mine(2)
        chain.reorganise(1, 2)
        waiting = spend(coin, 1, to=HERE)
        assert chain.broadcast(waiting) == Accepted(waiting.txid)
        tip, blocks = chain.tip(), [chain.block_at(height) for height in range(chain.tip().height + 1)]
    with EmbeddedChain(tmp_path, clock=clock) as chain:
        assert chain.tip() == tip
        assert [chain.block_at(height) for height in range(tip.height + 1)] == blocks
        assert coin_of(chain, coin.outpoint.txid, coin.script_pubkey).spent.txid == waiting.txid
        chain.mine(1)
        assert chain.transaction(waiting.txid).height == chain.tip().height


def test_one_folder_is_open_once(tmp_path, clock):
    with EmbeddedChain(tmp_path, clock=clock) as chain:
        with pytest.raises(ChainUnavailable, match="locked"):
            EmbeddedChain(tmp_path, clock=clock)
        chain.mine(1)


def test_a_closed_chain_is_unavailable(tmp_path, clock):
    chain = EmbeddedChain(tmp_path, clock=clock)
    chain.close()
    chain.close()
    with pytest.raises(ChainUnavailable):
        chain.tip()


def test_when_the_disk_is_full_the_chain_shuts_and_keeps_what_it_had(tmp_path, clock, monkeypatch):
    with EmbeddedChain(tmp_path, clock=clock) as chain:
        (kept,) = chain.mine(1)

        def fail(*_args):
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr("custody.server.chain.embedded.index.BlockStore.replace_mempool", fail)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            chain.mine(2)
        with pytest.raises(ChainUnavailable):
            chain.tip()
    monkeypatch.undo()
    with EmbeddedChain(tmp_path, clock=clock) as chain:
        assert chain.tip() == kept
        chain.mine(1)


def test_a_branch_with_an_invalid_block_leaves_everything_as_it_was(chain):
    coin = funded(chain, 1, 100_000)
    tip = chain.tip()
    with pytest.raises(InvalidBlock):
        chain.reorganise(1, 2, [spend(coin, 1, to=HERE, witness=(open_script(2),))])
    assert chain.tip() == tip
    assert chain.reorganise(1, 2)[-1] == chain.tip()


MINE_FOR_EVER = """
import sys, time
from pathlib import Path
from custody.server.chain.embedded import EmbeddedChain
from multisig.units import Sats
chain = EmbeddedChain(Path(sys.argv[1]), clock=time.time)
while True:
    txid = chain.fund(sys.argv[2], Sats(1_000))
    block = chain.mine(1)[0]
    print(block.height, block.hash, txid, flush=True)
"""


def test_no_block_that_was_announced_is_lost_by_a_kill(tmp_path, clock):
    """A block is on disk before it is announced; the engine alone would lose every one."""
    command = [sys.executable, "-c", MINE_FOR_EVER, str(tmp_path), open_address(1)]
    for lines in (1, 4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as miner:
            announced = [miner.stdout.readline().split() for _ in range(lines)]
            os.kill(miner.pid, signal.SIGKILL)
            announced += [line.split() for line in miner.stdout.read().splitlines() if line.count(" ") == 2]
        with EmbeddedChain(tmp_path, clock=clock) as chain:
            for height, block_hash, txid in announced:
                assert chain.block_at(int(height)).hash == block_hash
                assert chain.transaction(txid).height == int(height)
