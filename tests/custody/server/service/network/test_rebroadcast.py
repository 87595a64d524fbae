"""What is on its way is offered again: at a block, on a timer that nobody foretells, and with words where a node refuses (P37)."""

import pytest
from sqlalchemy import select

from custody.server.chain.backend import RefusalCode, Refused
from custody.server.service.network.broadcast import JITTER_SECONDS, LEAST, Rebroadcast
from custody.server.store.models import Job
from tests.support.backends import Unreliable
from tests.support.replacing import bump, finished, forget_mempool, made, status


@pytest.fixture
def node(funded):
    backends = funded.world.platform.background.backends
    backends["regtest"] = Unreliable(backends["regtest"])
    return backends["regtest"]


@pytest.fixture
def sent(funded, node):
    psbt_id = made(funded.propose(150_000, fee_rate="2"))
    finished(funded, psbt_id)
    return psbt_id


def timer(desk, jitter=0):
    background = desk.world.platform.background
    return Rebroadcast(background.store, desk.world.clock, jitter.to_bytes)


def waiting(desk):
    with desk.world.platform.services.store.read() as db:
        return [job.subject for job in db.scalars(select(Job).where(Job.done_at.is_(None)))]


def refuse(code, reason="min relay fee not met"):
    return lambda transaction: Refused(transaction.txid, code, reason)


class TestTheTimer:
    def test_offers_what_is_not_confirmed_and_nothing_else(self, funded, sent):
        pending = made(funded.propose(10_000))
        sweep = timer(funded)
        assert (sweep.run_due(), waiting(funded)) == (0, [])
        funded.world.clock.advance(seconds=LEAST.total_seconds())
        assert (sweep.run_due(), waiting(funded)) == (1, [sent])
        funded.outbox.run_due()
        funded.chain.mine(1)
        funded.watcher.look()
        funded.world.clock.advance(seconds=LEAST.total_seconds())
        assert sweep.run_due() == 0
        funded.admin = funded.world.as_user("admin@example.org")
        assert status(funded, sent, pending) == ["CONFIRMED", "PENDING"]

    def test_hands_it_to_the_node_though_that_has_it(self, funded, node, sent):
        """A node tells its neighbours again only when it is told again."""
        before = len(node.broadcasts)
        sweep = timer(funded)
        funded.world.clock.advance(seconds=LEAST.total_seconds())
        sweep.run_due()
        funded.outbox.run_due()
        assert len(node.broadcasts) == before + 1

    def test_is_not_at_the_same_moment_everywhere(self, funded, sent):
        early, late = timer(funded), timer(funded, JITTER_SECONDS - 1)
        funded.world.clock.advance(seconds=LEAST.total_seconds())
        assert (early.run_due(), late.run_due()) == (1, 0)
        funded.world.clock.advance(seconds=JITTER_SECONDS)
        assert late.run_due() == 1

    def test_runs_in_a_server(self, funded, sent):
        sweeps = funded.world.platform.background.expiry()
        funded.world.clock.advance(seconds=LEAST.total_seconds() + JITTER_SECONDS)
        sweeps.run_due()
        assert waiting(funded) == [sent]


class TestAFeeThatIsTooLowByNow:
    def test_p37_evicted_and_not_taken_back_it_says_so_and_a_bump_is_offered(self, funded, node, sent):
        forget_mempool(funded)
        node.answer = refuse(RefusalCode.FEE_TOO_LOW)
        funded.watcher.look()
        funded.outbox.run_due()
        shown = funded.proposal(sent)
        assert (shown["status"], shown["failure_code"]) == ("BROADCASTING", "fee-too-low")
        assert "replaces_psbt_id" in shown["failure_reason"]
        assert shown["may_be_replaced"]
        second = made(bump(funded, sent, fee_rate="9"))
        node.answer = None
        finished(funded, second)
        assert status(funded, sent, second) == ["REPLACED", "BROADCASTING"]
        assert funded.proposal(sent)["failure_code"] is None

    def test_where_it_is_taken_after_all_the_words_go(self, funded, node, sent):
        forget_mempool(funded)
        node.answer = refuse(RefusalCode.FEE_TOO_LOW)
        funded.watcher.look()
        funded.outbox.run_due()
        node.answer = None
        funded.world.clock.advance(seconds=61)
        funded.outbox.run_due()
        assert funded.proposal(sent)["failure_code"] is None
        funded.watcher.look()
        assert status(funded, sent) == ["BROADCASTING"]

    def test_it_never_reached_the_network_it_stalls_and_the_bump_goes_instead(self, funded, node):
        first = made(funded.propose(150_000, fee_rate="2"))
        node.answer = refuse(RefusalCode.FEE_TOO_LOW)
        finished(funded, first)
        shown = funded.proposal(first)
        assert (shown["status"], shown["failure_code"]) == ("STALLED", "fee-too-low")
        assert "replaces_psbt_id" in shown["failure_reason"]
        second = made(bump(funded, first, fee_rate="9"))
        node.answer = None
        finished(funded, second)
        assert status(funded, second) == ["BROADCASTING"]
        funded.world.clock.advance(seconds=61)
        funded.settle()
        assert status(funded, first, second) == ["REPLACED", "BROADCASTING"]
        assert waiting(funded) == []


def test_a_bump_that_is_refused_for_good_leaves_the_first_on_its_way(funded, node, sent):
    second = made(bump(funded, sent, fee_rate="9"))
    node.answer = refuse(RefusalCode.INVALID_SCRIPT, "mandatory-script-verify-flag-failed")
    finished(funded, second)
    assert status(funded, sent, second) == ["BROADCASTING", "FAILED"]
    assert funded.wallets()[0]["locked_sats"] == 0, "spent coins are no balance"
    node.answer = None
    funded.chain.mine(1)
    funded.watcher.look()
    assert status(funded, sent) == ["CONFIRMED"]
