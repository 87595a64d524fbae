"""From the last signature to the network: races, crashes and a node that is away (P11 to P14).

What waits in the mempool is offered again: at a block, at random times, and with words where a node refuses
(P37).
"""

from contextlib import closing
from datetime import datetime, timedelta

import pytest

from custody.server.chain.backend import BroadcastRefused, RefusalCode
from custody.server.jobs.outbox import BROADCAST
from custody.server.network.broadcast import JITTER_SECONDS, LEAST, Rebroadcast
from custody.server.store.models import AuditEventRow, JobRow, ProposalRow
from tests.custody.server.network.test_troubles import listen, told_of
from tests.support.backends import Unreliable
from tests.support.custody import ok, open_desk
from tests.support.platform import open_world
from tests.support.regtest import open_chain
from tests.support.replacing import bump, finished, forget_mempool, made, status


@pytest.fixture
def node(funded):
    """The backend that the workers see."""
    backends = funded.world.platform.background.backends
    backends["regtest"] = Unreliable(backends["regtest"])
    return backends["regtest"]


@pytest.fixture
def psbt_id(funded):
    return made(funded.propose(150_000, fee_rate="2"))


def finalised(desk, psbt_id):
    desk.approve("alice", psbt_id)
    assert desk.approve("bob", psbt_id)["status"] == "SIGNED"
    return desk.proposal(psbt_id)["txid_expected"]


def count(desk, model, *where):
    return len(desk.rows(model, *where))


def test_p12_a_crash_between_finalising_and_broadcast_resumes_with_the_same_txid(tmp_path, database):
    with open_desk(tmp_path / "state", database_url=database) as desk:
        desk.deposit(500_000)
        psbt_id = ok(desk.propose(150_000))["psbt_id"]
        txid = finalised(desk, psbt_id)
        final = desk.rows(ProposalRow)[0].final_tx
        desk.chain.close()
        # Another process on the same state folder, as after a restart.
        with open_world(tmp_path / "state", database_url=database) as world:
            with closing(open_chain(world.platform.background)) as chain:
                assert world.platform.background.outbox().run_due() == 1
                assert chain.transaction(txid).transaction.serialize() == final
            with world.platform.services.store.read() as db:
                proposal = db.get_one(ProposalRow, psbt_id)
                assert (proposal.status, proposal.txid) == ("BROADCASTING", txid)


def test_p13_a_crash_after_the_broadcast_is_a_success(funded, node, psbt_id):
    class Killed(BaseException):
        pass

    def die():
        raise Killed

    txid = finalised(funded, psbt_id)
    node.after_broadcast = die
    with pytest.raises(Killed):
        funded.outbox.run_due()
    node.after_broadcast = lambda: None
    assert funded.proposal(psbt_id)["status"] == "SIGNED"
    assert funded.outbox.run_due() == 0, "the dead worker's lease still runs"
    funded.world.clock.advance(seconds=61)
    assert funded.world.platform.background.outbox().run_due() == 1
    (proposal,) = funded.rows(ProposalRow)
    assert (proposal.status, proposal.txid) == ("BROADCASTING", txid)
    funded.chain.mine(1)
    assert funded.chain.transaction(txid).block.height == funded.chain.tip().height


def test_p14_the_node_is_down_at_the_threshold_and_comes_back(funded, node, psbt_id):
    """For how long it is stalled is told, however often it is tried: the alarm for stalled payments measures
    this, and a try comes each minute.
    """
    txid = finalised(funded, psbt_id)
    node.down = True
    assert funded.outbox.run_due() == 1
    stalled = funded.proposal(psbt_id)
    assert (stalled["status"], stalled["txid"]) == ("STALLED", None)
    assert stalled["failure_code"] == "BACKEND_UNAVAILABLE"
    (vault,) = funded.wallets()
    assert vault["locked_sats"] > 0, "its coins stay locked"
    for _ in range(3):
        funded.world.clock.advance(seconds=61)
        assert funded.outbox.run_due() == 1
    assert funded.proposal(psbt_id)["updated_at"] == stalled["updated_at"]
    node.down = False
    # What may heal is tried again.
    for number, code in enumerate(
        ("FEE_TOO_LOW", "FEE_TOO_LOW", "FEE_TOO_HIGH", "NON_FINAL", "MISSING_INPUTS")
    ):
        words = f"not now, {number}"
        node.answer = refuse(RefusalCode[code], words)
        funded.world.clock.advance(seconds=61)
        funded.outbox.run_due()
        told = funded.proposal(psbt_id)
        assert (told["status"], words in told["failure_reason"]) == ("STALLED", True)
        assert funded.wallets()[0]["locked_sats"] > 0
        if code == "FEE_TOO_LOW":
            changed = funded.world.clock.now - timedelta(seconds=61 * number)
            assert datetime.fromisoformat(told["updated_at"]) == changed, "when the code became another one"
            assert told["failure_code"] == "fee-too-low"
    node.answer = None
    funded.world.clock.advance(seconds=61)
    assert funded.outbox.run_due() == 1
    sent = funded.proposal(psbt_id)
    assert (sent["status"], sent["txid"], sent["failure_code"]) == ("BROADCASTING", txid, None)
    assert count(funded, AuditEventRow, AuditEventRow.action == "BROADCAST_STALLED") == 1


def test_what_the_node_refuses_for_good_fails_and_frees_the_coins(funded, node, psbt_id):
    finalised(funded, psbt_id)
    node.answer = refuse(RefusalCode.INVALID_SCRIPT, "mandatory-script-verify-flag-failed")
    funded.outbox.run_due()
    failed = funded.proposal(psbt_id)
    assert (failed["status"], failed["failure_code"]) == ("FAILED", "invalid-script")
    assert failed["failure_reason"] == "mandatory-script-verify-flag-failed"
    assert funded.wallets()[0]["locked_sats"] == 0
    assert node.broadcasts == []


@pytest.fixture
def sent(funded, node, psbt_id):
    """In the mempool."""
    finished(funded, psbt_id)
    return psbt_id


def timer(desk, jitter=0):
    background = desk.world.platform.background
    return Rebroadcast(background.store, desk.world.clock, jitter.to_bytes)


def waiting(desk):
    return [job.subject for job in desk.rows(JobRow, JobRow.done_at.is_(None), JobRow.kind == BROADCAST)]


def refuse(code, reason="min relay fee not met"):
    return lambda transaction: BroadcastRefused(transaction.txid, code, reason)


def test_the_timer_offers_what_is_not_confirmed_and_nothing_else(funded, node, sent):
    """Not at the same moment everywhere; and a server runs one."""
    pending = made(funded.propose(10_000))
    sweep, late = timer(funded), timer(funded, JITTER_SECONDS - 1)
    server = funded.world.platform.background.expiry()
    assert (sweep(), waiting(funded)) == (0, [])
    funded.world.clock.advance(seconds=LEAST.total_seconds())
    assert (sweep(), late(), waiting(funded)) == (1, 0, [sent])
    before = len(node.broadcasts)
    funded.outbox.run_due()
    assert len(node.broadcasts) == before + 1, "though the node has it: it tells its neighbours again"
    funded.world.clock.advance(seconds=JITTER_SECONDS)
    assert (late(), waiting(funded)) == (1, [sent])
    funded.outbox.run_due()
    funded.world.clock.advance(seconds=LEAST.total_seconds() + JITTER_SECONDS)
    server()
    assert waiting(funded) == [sent]
    funded.outbox.run_due()
    funded.mine()
    funded.world.clock.advance(seconds=LEAST.total_seconds() + JITTER_SECONDS)
    assert [each() for each in (sweep, late)] == [0, 0]
    funded.admin = funded.world.as_user("admin@example.org")
    assert status(funded, sent, pending) == ["CONFIRMED", "PENDING"]


class TestAFeeThatIsTooLowByNow:
    def test_p37_evicted_and_not_taken_back_it_says_so_and_a_bump_is_offered(self, funded, node, sent):
        listen(funded)
        forget_mempool(funded)
        node.answer = refuse(RefusalCode.FEE_TOO_LOW)
        funded.watcher.look()
        funded.outbox.run_due()
        shown = funded.proposal(sent)
        assert (shown["status"], shown["failure_code"]) == ("BROADCASTING", "fee-too-low")
        assert "replaces_psbt_id" in shown["failure_reason"]
        assert shown["may_be_replaced"]
        funded.world.clock.advance(minutes=2)
        funded.watcher._seen = None
        funded.watcher.look()
        trouble = funded.proposal(sent)["trouble"]
        assert (trouble["kind"], trouble["advice"]) == ("fee-too-low", "bump")
        second = made(bump(funded, sent, fee_rate="9"))
        node.answer = None
        finished(funded, second)
        assert status(funded, sent, second) == ["REPLACED", "BROADCASTING"]
        assert funded.proposal(sent)["failure_code"] is None
        assert told_of(funded) == [("troubled", "fee-too-low"), ("trouble_ended", "fee-too-low")]

    def test_it_never_reached_the_network_it_stalls_and_the_bump_goes_instead(self, funded, node, psbt_id):
        first = psbt_id
        node.answer = refuse(RefusalCode.FEE_TOO_LOW)
        finished(funded, first)
        shown = funded.proposal(first)
        assert (shown["status"], shown["failure_code"]) == ("STALLED", "fee-too-low")
        assert shown["trouble"]["kind"] == "fee-too-low"
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
    funded.mine()
    assert status(funded, sent) == ["CONFIRMED"]
