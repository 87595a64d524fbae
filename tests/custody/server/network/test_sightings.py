"""What the chain does to proposals: confirmations, reorganisations, coins spent elsewhere (P36)."""

import pytest

from custody.server.audit.verification import read_through
from custody.server.store.models import ChainTransactionRow, ProposalRow
from multisig import Transaction, build_psbt, finalise
from multisig.builder import CoinToSpend
from tests.support.custody import SHOP, ok, sign
from tests.support.regtest import mine_branch
from tests.support.replacing import forget_mempool
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
