"""Cancelling is soft: submitted signatures stay valid, as the answer, the locks and the limits show (P22)."""

import pytest
from sqlalchemy import update

from custody.server.store.models import KeyRow, ProposalRow
from tests.support.custody import Desk, ok, refused
from tests.support.prepared import Story
from tests.support.replacing import bump, cancel, finished, forget_mempool, made, status, take_back


@pytest.fixture
def beginning() -> Story:
    return a_proposal


def a_proposal(desk: Desk) -> None:
    desk.deposit(500_000)
    made(desk.propose(150_000, fee_rate="2"))


@pytest.fixture
def first(desk):
    (proposal,) = desk.rows(ProposalRow)
    return proposal.id


def test_nothing_is_out_and_the_coins_are_free(desk, first):
    answer = ok(cancel(desk, first, reason="the wrong shop"))
    assert (answer["status"], answer["released_signatures"]) == ("CANCELLED", 0)
    assert (answer["coins_kept"], answer["self_spend_offered"]) == (False, False)
    record = desk.proposal(first)
    assert (record["failure_code"], record["failure_reason"]) == ("cancelled", "the wrong shop")
    assert desk.audited()[-1] == "PROPOSAL_CANCELLED"
    desk.sign_off(again := made(desk.propose(150_000)))
    assert "cancels_psbt_id" in refused(cancel(desk, again), 409, "STATE_CONFLICT")["detail"]
    desk.settle()
    desk.mine()
    assert "cancels_psbt_id" not in refused(cancel(desk, again), 409, "STATE_CONFLICT")["detail"]


def test_a_signature_is_out_and_the_coins_are_kept_until_a_member_frees_them(desk, first):
    desk.approve("alice", first)
    answer, size = ok(cancel(desk, first)), len(desk.audited())
    assert ok(cancel(desk, first)) == answer, "again it answers the same and changes nothing"
    assert len(desk.audited()) == size
    assert (answer["released_signatures"], answer["coins_kept"]) == (1, True)
    assert answer["self_spend_offered"]
    # It is not offered where nobody could propose it, or sign it.
    desk.freeze()
    assert ok(cancel(desk, first))["self_spend_offered"] is False
    desk.unfreeze()
    refused(desk.submit("bob", first, desk.signed("bob", first)), 409, "STATE_CONFLICT")
    with desk.store.write() as db:
        others = update(KeyRow).where(KeyRow.user_id != desk.user_ids["alice"])
        db.execute(others.values(status="revoked", revoked_reason="lost"))
    assert ok(cancel(desk, first))["self_spend_offered"] is False
    answer = ok(cancel(desk, first, release_coins=True))
    assert (answer["coins_kept"], answer["self_spend_offered"]) == (False, False)
    assert (desk.locks(), desk.used()) == ({}, "0.00000000")
    assert desk.audited()[-1] == "CANCELLED_COINS_RELEASED"


class TestTheSelfSpend:
    def test_takes_the_kept_coins_back_and_where_it_ends_they_are_kept_as_before(self, desk, first):
        desk.approve("alice", first)
        ok(cancel(desk, first))
        assert "cancel" in refused(bump(desk, first, fee_rate="5"), 409, "STATE_CONFLICT")["detail"]
        back = made(take_back(desk, first, fee_rate="5"))
        assert ok(cancel(desk, first))["self_spend_offered"] is False, "it is there"
        desk.reject(back)
        assert len(desk.locks()) == 1
        back = made(take_back(desk, first, fee_rate="6"))
        finished(desk, back)
        desk.mine()
        assert status(desk, first, back) == ["CANCELLED", "CONFIRMED"]
        assert desk.used() == f"0.{desk.proposal(back)['fee_sats']:08d}", (
            "what was cancelled can leave no more"
        )

    def test_outlives_the_time_of_what_it_takes_back(self, desk, first):
        desk.later(days=10)
        desk.approve("alice", first)
        ok(cancel(desk, first))
        ok(take_back(desk, first, fee_rate="5"))
        for days, kept in ((5, 1), (10, 0)):
            desk.world.clock.advance(days=days)
            desk.world.platform.background.expiry()()
            assert len(desk.locks()) == kept, "no coin is locked for ever"


def test_a_lost_keys_signature_is_out_though_it_counts_no_more(desk, first):
    desk.approve("alice", first)
    alice = desk.signers["alice"]
    (key,) = ok(alice.get("/api/v1/keys"))
    ok(alice.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost", "force": True}))
    assert desk.proposal(first)["collected_signatures"] == 0
    answer = ok(cancel(desk, first))
    assert (answer["released_signatures"], answer["coins_kept"]) == (1, True)


class TestWhatIsBeingTakenBack:
    """The platform is not the one who sends it."""

    @pytest.fixture
    def pair(self, desk, first):
        desk.sign_off(first)
        back = made(take_back(desk, first, fee_rate="5"))
        desk.settle()
        shown = desk.proposal(first)
        assert (shown["status"], shown["failure_code"]) == ("STALLED", "taken-back"), "it is not sent"
        assert back in shown["failure_reason"]
        return first, back

    def test_is_sent_where_that_is_given_up(self, desk, pair):
        first, back = pair
        ok(cancel(desk, back))
        desk.world.clock.advance(seconds=61)
        desk.settle()
        assert status(desk, first, back) == ["BROADCASTING", "CANCELLED"]
        assert desk.proposal(first)["failure_code"] is None

    def test_is_not_offered_again_once_it_was_evicted(self, desk, first):
        txid = finished(desk, first)
        made(take_back(desk, first, fee_rate="5"))
        forget_mempool(desk)
        desk.settle()
        assert desk.chain.transaction(txid) is None
        assert status(desk, first) == ["BROADCASTING"]


def test_nothing_is_built_upon_change_that_a_bump_would_do_away_with(desk, first):
    finished(desk, first)
    ok(bump(desk, first, fee_rate="5"))
    refused(desk.propose(10_000), 422, "INSUFFICIENT_FUNDS")
