"""Beyond the contract of all backends: paying out, mining, replacements, and what survives a restart and a
kill.
"""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from custody.server.chain.backend import Accepted, BroadcastRefused, RefusalCode, SpendingTransaction
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.engine import InvalidBlock
from custody.server.errors import ChainUnavailable
from multisig.errors import WrongNetwork
from multisig.units import Sats
from tests.support.regtest import coin_of, funded, mine_branch, open_address, open_output, open_script, spend

HERE = open_output(7)


def test_fund_refuses_what_it_cannot_pay(chain):
    with pytest.raises(WrongNetwork):
        chain.fund("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", Sats(1_000))
    with pytest.raises(ValueError, match="dust"):
        chain.fund(open_address(1), Sats(329))
    assert chain.tip().height == 0
    with pytest.raises(ValueError, match="does not own"):
        chain.fund(open_address(1), Sats(20_000 * 100_000_000))


def test_an_invalid_spend_cannot_be_mined_on_the_tip_or_in_a_branch(chain):
    coin = funded(chain, 1, 100_000)
    tip, wrong = chain.tip(), spend(coin, 1, to=HERE, witness=(open_script(2),))
    for mine in (lambda: mine_branch(chain, 0, 1, [wrong]), lambda: mine_branch(chain, 1, 2, [wrong])):
        with pytest.raises(InvalidBlock):
            mine()
        assert chain.tip() == tip
    assert chain.spender(coin.outpoint) is None
    chain.mine(1)
    assert mine_branch(chain, 1, 2)[-1] == chain.tip()


def test_everything_survives_a_restart(tmp_path, clock):
    with closing(EmbeddedChain(tmp_path, clock=clock)) as chain:
        with pytest.raises(ChainUnavailable, match="locked"):
            EmbeddedChain(tmp_path, clock=clock)
        coin = funded(chain, 1, 100_000)
        chain.mine(2)
        mine_branch(chain, 1, 2)
        replaced, waiting = spend(coin, 1, to=HERE), spend(coin, 1, to=HERE, fee=5_000)
        for transaction in (replaced, waiting):
            assert chain.broadcast(transaction) == Accepted(transaction.txid)
        tip, blocks = chain.tip(), [chain.block_at(height) for height in range(chain.tip().height + 1)]
    with closing(EmbeddedChain(tmp_path, clock=clock)) as chain:
        assert chain.tip() == tip
        assert [chain.block_at(height) for height in range(tip.height + 1)] == blocks
        assert coin_of(chain, coin.outpoint.txid, coin.script_pubkey).spent.txid == waiting.txid
        assert chain.transaction(replaced.txid) is None
        chain.mine(1)
        assert chain.transaction(waiting.txid).block.height == chain.tip().height


def test_when_the_disk_is_full_the_chain_shuts_and_keeps_what_it_had(tmp_path, clock, monkeypatch):
    with closing(EmbeddedChain(tmp_path, clock=clock)) as chain:
        (kept,) = chain.mine(1)

        def fail(*_args):
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr("custody.server.chain.embedded.index.BlockStore.replace_mempool", fail)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            chain.mine(2)
        with pytest.raises(ChainUnavailable):
            chain.tip()
    monkeypatch.undo()
    with closing(EmbeddedChain(tmp_path, clock=clock)) as chain:
        assert chain.tip() == kept
        chain.mine(1)


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
        with closing(EmbeddedChain(tmp_path, clock=clock)) as chain:
            for height, block_hash, txid in announced:
                assert chain.block_at(int(height)).hash == block_hash
                assert chain.transaction(txid).block.height == int(height)


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
