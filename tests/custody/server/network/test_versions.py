"""Versions of one payment on the chain: whichever is confirmed is the one, and the record says so at every
step (P36, P37).
"""

import pytest

from custody.server.store.models import JobRow, ProposalRow
from tests.custody.server.network.test_sightings import (
    final,
    outside_spend,
    signed_outside,
    spent_alone,
)
from tests.support.custody import Desk, ok
from tests.support.prepared import Story, nothing
from tests.support.regtest import mine_branch
from tests.support.replacing import bump, cancel, finished, forget_mempool, made, status, take_back


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    if "pair" in request.fixturenames:
        return a_bump_on_its_way
    return a_proposal if "first" in request.fixturenames else nothing


def a_proposal(desk: Desk) -> None:
    desk.deposit(500_000)
    made(desk.propose(150_000, fee_rate="2"))


def a_bump_on_its_way(desk: Desk) -> None:
    a_proposal(desk)
    first = ids(desk)[0]
    finished(desk, first)
    desk.world.clock.advance(seconds=1)
    second = made(bump(desk, first, fee_rate="5"))
    finished(desk, second)
    assert status(desk, first, second) == ["REPLACED", "BROADCASTING"]


def ids(desk: Desk) -> list[str]:
    return [each.id for each in sorted(desk.rows(ProposalRow), key=lambda each: each.created_at)]


@pytest.fixture
def first(desk):
    return ids(desk)[0]


@pytest.fixture
def pair(desk):
    """The first in the mempool, and the bump that took its place."""
    first, second = ids(desk)
    return first, second


def open_jobs(desk):
    waiting = JobRow.done_at.is_(None), JobRow.dead_at.is_(None), JobRow.kind == "broadcast"
    return {job.subject for job in desk.rows(JobRow, *waiting)}


class TestReorganisations:
    def test_the_other_branch_holds_the_other_version(self, desk, pair):
        first, second = pair
        desk.mine()
        assert status(desk, first, second) == ["INVALIDATED", "CONFIRMED"]
        assert desk.proposal(first)["failure_code"] == "other-version-confirmed"
        assert set(desk.locks()) == desk.coins(second), "a reorganisation may bring its coins back"
        desk.reorganise(1, 2, [final(desk, first)])
        assert status(desk, first, second) == ["CONFIRMED", "INVALIDATED"]
        assert desk.proposal(first)["replaced_by_psbt_id"] is None
        assert second not in open_jobs(desk)
        log = ok(desk.admin.get("/api/v1/get-logs", org_uid=1, workspace_uid=1, order="newest"))["logs"]
        told = [each["description"] for each in log if each["action"] == "PROPOSAL_INVALIDATED"]
        assert f"{first} is confirmed" in told[0]
        desk.reorganise(2, 3, [final(desk, second)])
        assert status(desk, first, second) == ["INVALIDATED", "CONFIRMED"]
        assert set(desk.locks()) == desk.coins(second)

    def test_neither_is_confirmed_where_another_takes_the_coin(self, desk, pair):
        first, second = pair
        mine_branch(desk.chain, 0, 1, [outside_spend(desk, first)])
        desk.watcher.look()
        assert status(desk, first, second) == ["INVALIDATED", "INVALIDATED"]
        assert desk.proposal(second)["failure_code"] == "coin-spent"
        assert desk.locks() == {}

    def test_a_deep_one_that_leaves_nothing_behind(self, desk, pair):
        first, second = pair
        desk.mine()
        desk.mine(7)
        mine_branch(desk.chain, 8, 9)
        forget_mempool(desk)
        desk.watcher.look()
        assert status(desk, first, second) == ["REPLACED", "BROADCASTING"]
        assert open_jobs(desk) == {second}, "what was replaced is not offered again"
        desk.settle()
        desk.mine()
        assert status(desk, first, second) == ["INVALIDATED", "CONFIRMED"]


class TestTheMempool:
    def test_where_the_bump_has_ended_the_first_is_offered_again(self, desk):
        """Its added coin was spent elsewhere: what it replaced can still be mined."""
        desk.deposit(100_000)
        first = made(desk.propose(98_000, fee_rate="2"))
        desk.deposit(50_000)
        finished(desk, first)
        second = made(bump(desk, first, fee_rate="30"))
        finished(desk, second)
        assert status(desk, first, second) == ["REPLACED", "BROADCASTING"]
        (added,) = desk.coins(second) - desk.coins(first)
        inputs = desk.psbt(second).inputs
        mine_branch(
            desk.chain, 0, 1, [spent_alone(desk, *(each for each in inputs if each.outpoint == added))]
        )
        desk.watcher.look()
        assert status(desk, first, second) == ["BROADCASTING", "INVALIDATED"]
        assert desk.proposal(first)["may_be_replaced"]
        desk.settle()
        desk.mine()
        assert status(desk, first) == ["CONFIRMED"]

    def test_a_stalled_first_one_is_replaced_and_no_failure(self, desk, first):
        """The bump was on the network before it."""
        desk.approve("alice", first)
        second = made(bump(desk, first, fee_rate="5"))
        ok(cancel(desk, second))
        desk.approve("bob", first)
        assert status(desk, first) == ["SIGNED"]
        third = made(bump(desk, first, priority="low"))
        desk.sign_off(third)
        desk.chain.broadcast(final(desk, third))
        with desk.store.write() as db:
            # As another worker would have it, a moment before this one is told no.
            db.get_one(ProposalRow, third).status = "BROADCASTING"
        desk.outbox.run_due()
        assert status(desk, first, third) == ["REPLACED", "BROADCASTING"]
        assert desk.proposal(first)["failure_code"] is None


class TestEndedAndSeenAfterAll:
    """Signatures stay valid: what the platform gave up may be finished elsewhere, and the record tells the
    truth.
    """

    @pytest.fixture(params=["REJECTED", "CANCELLED", "EXPIRED"])
    def ended(self, request, desk, first):
        match request.param:
            case "REJECTED":
                desk.reject(first)
            case "CANCELLED":
                desk.approve("alice", first)
                ok(cancel(desk, first))
            case "EXPIRED":
                desk.later(days=15)
                desk.world.platform.background.expiry()()
        assert status(desk, first) == [request.param]
        return first

    def test_in_the_mempool_in_a_block_and_offered_again_after_a_reorganisation(self, desk, ended):
        transaction = signed_outside(desk, ended)
        desk.chain.broadcast(transaction)
        desk.watcher.look()
        shown = desk.proposal(ended)
        assert (shown["status"], shown["txid"]) == ("BROADCASTING", transaction.txid)
        assert shown["failure_code"] is None
        assert set(desk.locks()) == desk.coins(ended)
        desk.mine()
        assert status(desk, ended) == ["CONFIRMED"]
        assert final(desk, ended).txid == transaction.txid, "it is kept"
        forgotten_with_its_block(desk)
        assert status(desk, ended) == ["BROADCASTING"]
        desk.settle()
        desk.mine()
        assert status(desk, ended) == ["CONFIRMED"]

    def test_a_later_proposal_with_its_coins_has_lost_them(self, desk, ended):
        if status(desk, ended) == ["CANCELLED"]:
            ok(cancel(desk, ended, release_coins=True))
        other = made(desk.propose(200_000, fee_rate="2"))
        assert desk.coins(other) == desk.coins(ended)
        mine_branch(desk.chain, 0, 1, [signed_outside(desk, ended)])
        desk.watcher.look()
        assert status(desk, ended, other) == ["CONFIRMED", "INVALIDATED"]
        assert desk.locks() == dict.fromkeys(desk.coins(ended), ended)


def forgotten_with_its_block(desk) -> None:
    mine_branch(desk.chain, 1, 2)
    forget_mempool(desk)
    desk.watcher.look()


def test_a_payment_that_was_taken_back_is_not_revived_by_a_reorganisation(desk, first):
    finished(desk, first)
    back = made(take_back(desk, first, fee_rate="5"))
    finished(desk, back)
    desk.mine()
    forgotten_with_its_block(desk)
    assert open_jobs(desk) == {back}
    desk.settle()
    desk.mine()
    assert status(desk, first, back) == ["INVALIDATED", "CONFIRMED"]
