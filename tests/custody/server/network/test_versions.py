"""What the chain does to proposals: confirmations, reorganisations, coins spent elsewhere (P36). Of the
versions of one payment whichever is confirmed is the one, and the record says so at every step (P36, P37).
"""

from dataclasses import replace

import pytest

from custody.server.audit.verification import read_through
from custody.server.chain.backend import ChainTransaction
from custody.server.store.models import ChainTransactionRow, JobRow, ProposalRow
from multisig import Transaction, build_psbt, finalise
from multisig.builder import CoinToSpend
from tests.support.custody import SHOP, Desk, ok, sign
from tests.support.prepared import Story, nothing
from tests.support.regtest import mine_branch
from tests.support.replacing import bump, cancel, finished, forget_mempool, made, status, take_back
from tests.support.rows import lock_coins
from tests.support.wallets import pay


@pytest.fixture
def psbt_id(desk):
    desk.deposit(500_000)
    return ok(desk.propose(150_000))["psbt_id"]


@pytest.fixture
def sent(desk, psbt_id):
    """In the mempool."""
    broadcasting(desk, psbt_id)
    return psbt_id


def outside_spend(desk, psbt_id) -> Transaction:
    """Two signers spend the proposal's coins another way, without the platform."""
    return spent_alone(desk, *desk.psbt(psbt_id).inputs)


def spent_alone(desk, *inputs) -> Transaction:
    """Two signers spend these inputs of a proposal another way."""
    coins = []
    for item in inputs:
        (path, *_) = [origin.path for origin in item.derivations.values()]
        place = path.indexes[-2:]
        coins.append(CoinToSpend(item.outpoint, item.witness_utxo.amount, *place, item.non_witness_utxo))
    total = sum(coin.amount for coin in coins)
    return signed_by_two(desk, build_psbt(desk.policy, coins, [pay(total - 2_000, "elsewhere")], 0))


def signed_outside(desk, psbt_id) -> Transaction:
    """Two signers finish the proposal's own transaction without the platform."""
    return signed_by_two(desk, desk.psbt(psbt_id).without_signatures())


def signed_by_two(desk, psbt) -> Transaction:
    for name in ("alice", "bob"):
        psbt = sign(desk.devices[name], psbt)
    return finalise(psbt, desk.policy)


def final(desk, psbt_id) -> Transaction:
    (proposal,) = desk.rows(ProposalRow, ProposalRow.id == psbt_id)
    return Transaction.parse(proposal.final_tx)


def broadcasting(desk, psbt_id):
    desk.sign_off(psbt_id)
    desk.settle()
    assert desk.proposal(psbt_id)["status"] == "BROADCASTING"


def confirmed(desk, psbt_id):
    broadcasting(desk, psbt_id)
    desk.mine()
    assert desk.proposal(psbt_id)["status"] == "CONFIRMED"


class TestP36:
    def test_a_broadcast_one_loses_to_a_mined_rival_and_lives_again_when_that_is_reorganised_away(
        self, desk, sent
    ):
        txid = desk.proposal(sent)["txid"]
        mine_branch(desk.chain, 0, 1, [outside_spend(desk, sent)])
        desk.watcher.look()
        assert desk.proposal(sent)["status"] == "INVALIDATED"
        desk.outbox.run_due()
        assert desk.proposal(sent)["status"] == "INVALIDATED"
        desk.reorganise(1, 2, [final(desk, sent)])
        shown = desk.proposal(sent)
        assert (shown["status"], shown["txid"], shown["failure_code"]) == ("CONFIRMED", txid, None)

    def test_a_stalled_one_too_and_its_job_ends(self, desk, psbt_id):
        desk.sign_off(psbt_id)
        mine_branch(desk.chain, 0, 1, [outside_spend(desk, psbt_id)])
        desk.outbox.run_due()
        assert desk.proposal(psbt_id)["status"] == "STALLED"
        desk.watcher.look()
        assert desk.proposal(psbt_id)["status"] == "INVALIDATED"
        desk.world.clock.advance(seconds=61)
        assert desk.outbox.run_due() == 1
        desk.world.clock.advance(seconds=61)
        assert desk.outbox.run_due() == 0

    def test_but_not_where_another_proposal_has_its_coin_by_then(self, desk, sent):
        mine_branch(desk.chain, 0, 1, [outside_spend(desk, sent)])
        desk.watcher.look()
        # The rival and its block vanish; ours is not back in the mempool, and a member proposes anew.
        mine_branch(desk.chain, 1, 2)
        forget_mempool(desk)
        with desk.store.write() as db:
            lock_coins(db, "regtest", desk.coins(sent), "another")
        desk.watcher.look()
        assert desk.proposal(sent)["status"] == "INVALIDATED"


class TestReorganisations:
    def test_a_confirmed_one_goes_back_to_the_mempool_and_is_what_the_chain_says_each_time(self, desk, sent):
        desk.mine()
        assert desk.proposal(sent)["status"] == "CONFIRMED"
        # What the platform did by itself is in the audit log.
        actions = desk.audited()
        assert actions[-2:] == ["TRANSACTION_BROADCAST", "PROPOSAL_CONFIRMED"]
        assert read_through(desk.store).findings == ()

        desk.reorganise(1, 2)
        shown = desk.proposal(sent)
        assert (shown["status"], shown["confirmations"], shown["block_hash"]) == ("BROADCASTING", 0, None)
        (block,) = desk.mine()
        again = desk.proposal(sent)
        assert (again["status"], again["block_hash"]) == ("CONFIRMED", block.hash)
        # It is mined in the other branch too.
        branch = mine_branch(desk.chain, 1, 2, [final(desk, sent)])
        desk.watcher.look()
        after = desk.proposal(sent)
        assert (after["status"], after["block_hash"]) == ("CONFIRMED", branch[0].hash)
        assert after["block_hash"] != again["block_hash"]
        assert after["confirmations"] == 2
        # And double-spent in a third.
        desk.reorganise(2, 3, [outside_spend(desk, sent)])
        assert desk.proposal(sent)["status"] == "INVALIDATED"
        assert desk.wallets()[0]["confirmed_sats"] == 0

    def test_unconfirmed_change_that_was_spent_again_survives(self, desk, sent):
        """A chain of two of our own, both thrown back and mined again."""
        second = ok(desk.propose(100_000, recipients=[SHOP]))["psbt_id"]
        confirmed(desk, second)
        desk.mine(3)
        desk.reorganise(4, 5)
        assert [desk.proposal(each)["status"] for each in (sent, second)] == ["BROADCASTING"] * 2
        desk.mine()
        assert [desk.proposal(each)["status"] for each in (sent, second)] == ["CONFIRMED"] * 2


def test_p36_of_a_deposit_that_never_was_nothing_stays(desk):
    """Its sender replaced it, again and again; or an explorer has made it up."""
    desk.deposit(100_000)
    for amount in (200_000, 300_000):
        desk.deposit(amount, blocks=0)
        assert len(desk.rows(ChainTransactionRow)) == 2
        forget_mempool(desk)
        desk.watcher.look()
        assert len(desk.rows(ChainTransactionRow)) == 1


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


class TestReorganisedVersions:
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

    def test_in_the_mempool_in_a_block_and_offered_again_after_a_reorganisation(
        self, desk, ended, monkeypatch
    ):
        transaction = signed_outside(desk, ended)
        desk.chain.broadcast(transaction)
        unsigned = replace(
            transaction, inputs=tuple(replace(each, witness=()) for each in transaction.inputs)
        )
        with monkeypatch.context() as lying:
            lying.setattr(desk.chain, "transaction", lambda _txid: ChainTransaction(unsigned, None))
            desk.watcher.look()
        assert desk.rows(ProposalRow, ProposalRow.id == ended)[0].final_tx is None, "no spend of its coins"
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
