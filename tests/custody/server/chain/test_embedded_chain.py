"""Beyond the contract of all backends: paying out, mining, and what survives a restart and a kill."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from custody.server.chain.backend import Accepted
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
