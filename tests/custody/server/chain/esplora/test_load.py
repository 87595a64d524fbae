"""How much an explorer is asked: the load that the documentation promises."""

from collections import Counter
from contextlib import suppress

import pytest

from custody.server.chain.esplora.wire import RequestPace
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from tests.support.chains import confirmed_coin
from tests.support.esplora import URL, EsploraBackend, plain
from tests.support.regtest import FakeClock, open_output, spend

PACE = RequestPace()


class Watched:
    """A hundred scripts, of which a few were paid, looked at as the watcher does."""

    def __init__(self, rig):
        self.rig, self.clock = rig, FakeClock()
        self.coin, self.number = confirmed_coin(rig)
        rig.mine(3)
        self.scripts = [self.coin.script_pubkey] + [open_output(10_000 + each) for each in range(99)]
        self.backend = EsploraBackend(
            URL, Network.REGTEST, pace=PACE, transport=rig.explorer, clock=self.clock
        )

    def look(self, since=0):
        """The kinds of questions that one look makes, and how many of each."""
        self.rig.explorer.asked.clear()
        for target in (2, 6, 72):
            self.backend.fee_estimate(target)
        tip = self.backend.tip()
        self.found = self.backend.outputs_to(self.scripts, since_height=since)
        self.backend.block_at(tip.height)
        assert self.backend.tip().height >= tip.height
        return Counter(path.split("/")[1] for path in self.rig.explorer.asked)


@pytest.fixture
def watched(rig):
    seen = Watched(rig)
    seen.look()
    return seen


def test_the_next_looks_ask_nothing_and_each_script_once_in_a_period(watched):
    assert watched.look() == {}
    watched.clock.now += PACE.tip_seconds
    assert watched.look() == {"blocks": 1}
    watched.clock.now += PACE.scripts_seconds
    asked = watched.look()
    assert (asked["scripthash"], asked["tx"]) == (100, 0)
    assert watched.found == (watched.coin,)
    pace = RequestPace(scripts_seconds=30, requests_per_second=20)
    assert (pace.scripts_period(100), pace.scripts_period(10_000)) == (30, 500), "the more, the less often"


def test_what_was_broadcast_is_looked_for_at_once(watched, rig):
    payment = spend(watched.coin, watched.number, to=open_output(20_000))
    watched.backend.broadcast(payment)
    watched.look()
    assert [each.spent.txid for each in watched.found] == [payment.txid]


def test_what_waits_is_read_again_though_its_count_is_the_same(watched, rig):
    """A sender's fee bump replaces the transaction but leaves the counts the same."""
    source, number = confirmed_coin(rig)
    first = spend(source, number, to=watched.coin.script_pubkey)
    second = spend(source, number, to=watched.coin.script_pubkey, sequence=0xFFFFFFFE)
    rig.send(first)
    watched.clock.now += PACE.scripts_seconds
    watched.look()
    rig.forget()
    rig.send(second)
    watched.clock.now += PACE.scripts_seconds
    watched.look()
    assert {each.outpoint.txid for each in watched.found if each.block is None} == {second.txid}


def test_a_lie_is_not_asked_for_at_every_look(watched, rig):
    """A watcher looks twice a second, and every lie would cost a sweep of all scripts."""
    sweeps = 0
    with rig.explorer.answering("/scripthash/.*", lambda _: plain("<html>")):
        for _ in range(240):
            watched.clock.now += 0.5
            rig.explorer.asked.clear()
            with suppress(ChainUnavailable):
                watched.look()
            sweeps += any("scripthash" in path for path in rig.explorer.asked)
    assert sweeps <= 5
