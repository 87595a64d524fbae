"""Whatever happens on the chain, in whatever order it is looked at:
the backend tells what the chain itself does.
"""

import random

import pytest

from custody.server.chain.core import history, node
from custody.server.errors import ChainUnavailable
from tests.support.examples import drawn
from tests.support.fake_bitcoind import FakeNodeRig
from tests.support.regtest import open_output, spend

NUMBERS = tuple(range(1, 17))
SCRIPTS = {number: open_output(number) for number in NUMBERS}
STEPS = 50
METHODS = (
    "getblockhash", "getblock", "scanblocks", "getrawmempool", "getrawtransaction", "gettxspendingprevout",
)  # fmt: skip


def number_of(coin):
    return next(number for number, script in SCRIPTS.items() if script == coin.script_pubkey)


class Story:
    """Random events from a seed."""

    def __init__(self, rig, seed):
        self.rig = rig
        self.chance = random.Random(seed)

    def fund(self):
        self.rig.fund(self.chance.choice(NUMBERS), self.chance.randrange(10_000, 90_000))

    def spend(self):
        free = [coin for coin in self.rig.chain.outputs_to(SCRIPTS.values()) if coin.spent is None]
        if free:
            coin = self.chance.choice(free)
            self.rig.send(spend(coin, number_of(coin), to=SCRIPTS[self.chance.choice(NUMBERS)]))

    def mine(self):
        self.rig.mine(self.chance.choice((1, 1, 1, 2, 9)), empty=self.chance.random() < 0.2)

    def reorganise(self):
        depth = self.chance.choice((1, 1, 2, 2, 3, 5, 8, 20))
        rivals = self.rivals(self.rig.chain.tip().height - depth)
        self.rig.reorganise(depth, depth + self.chance.randrange(1, 4), rivals)

    def rivals(self, fork):
        """Another spend, for the branch, of a coin that is there at the fork and not spent yet."""
        found = self.rig.chain.outputs_to(SCRIPTS.values())
        there = [coin for coin in found if coin.block is not None and coin.block.height <= fork]
        free = [coin for coin in there if coin.spent is None or coin.touched_since(fork + 1)]
        if not free or self.chance.random() < 0.5:
            return ()
        coin = self.chance.choice(free)
        return (spend(coin, number_of(coin), to=SCRIPTS[self.chance.choice(NUMBERS)], fee=3_000),)

    def forget(self):
        self.rig.forget()

    def step(self):
        happens = self.chance.choices(
            (self.fund, self.spend, self.mine, self.reorganise, self.forget), (4, 6, 5, 4, 1)
        )[0]
        happens()

    def compare(self, backend):
        asked = [SCRIPTS[number] for number in self.chance.sample(NUMBERS, self.chance.choice((1, 2, 3, 16)))]
        since = self.chance.choice((0, 0, self.rig.chain.tip().height + self.chance.randrange(-30, 2)))
        told = backend.outputs_to(asked, since_height=since)
        true = self.rig.chain.outputs_to(asked, since_height=since)
        assert len(told) == len(set(told))
        assert set(told) == set(true)
        for coin in told:
            assert backend.transaction(coin.outpoint.txid) == self.rig.chain.transaction(coin.outpoint.txid)


@pytest.fixture
def rig(tmp_path):
    opened = FakeNodeRig(tmp_path / "chain")
    for number in NUMBERS:
        opened.fund(number, 500_000)
        opened.mine(2)
    yield opened
    opened.close()


@pytest.fixture
def small(monkeypatch):
    """Limits so small that every way of reading is taken often."""
    monkeypatch.setattr(history, "SHORT", 4)
    monkeypatch.setattr(history, "UNSETTLED", 1)
    monkeypatch.setattr(history, "BLOCKS_PER_SCAN", 7)
    monkeypatch.setattr(history, "KEPT_HASHES", 15)
    monkeypatch.setattr(history, "TRANSACTIONS_PER_CALL", 2)
    monkeypatch.setattr(node, "OUTPOINTS_PER_CALL", 2)


@pytest.mark.parametrize("seed", drawn(range(4), 1, of="still"))
def test_it_tells_what_the_chain_does(rig, small, seed):
    story = Story(rig, seed)
    for _ in range(STEPS):
        story.step()
        story.compare(rig.backend)
    late = rig.node.connect()
    assert set(late.outputs_to(SCRIPTS.values())) == set(rig.backend.outputs_to(SCRIPTS.values()))
    late.close()


@pytest.mark.parametrize("seed", drawn(range(100, 102), 1, of="moving"))
def test_it_tells_nothing_rather_than_half_of_it_while_the_chain_moves_amid_its_looks(rig, small, seed):
    story = Story(rig, seed)
    for _ in range(STEPS // 2):
        story.step()
        rig.node.faults.before[story.chance.choice(METHODS)] = story.step
        try:
            rig.backend.outputs_to(SCRIPTS.values())
        except ChainUnavailable:
            continue
        finally:
            rig.node.faults.before.clear()
        story.compare(rig.backend)
