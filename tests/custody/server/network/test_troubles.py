"""What is wrong with a proposal's transaction is said as soon as the mempool shows it (P66)."""

import pytest

from custody.server.store.models import ChainCoinRow, ProposalRow
from tests.custody.server.network.test_versions import (
    broadcasting,
    final,
    outside_spend,
    signed_outside,
)
from tests.support.custody import ok, refused
from tests.support.regtest import mine_branch
from tests.support.replacing import bump, cancel, finished, forget_mempool, made
from tests.support.webhooks import told


@pytest.fixture
def psbt_id(desk):
    desk.deposit(500_000)
    return made(desk.propose(150_000, fee_rate="1"))


@pytest.fixture
def sent(desk, psbt_id):
    """In the mempool."""
    broadcasting(desk, psbt_id)
    return psbt_id


def trouble(desk, psbt_id):
    return desk.proposal(psbt_id)["trouble"]


def kind(desk, psbt_id):
    found = trouble(desk, psbt_id)
    return None if found is None else found["kind"]


def told_of(desk):
    """What webhooks were told of troubles, in order."""
    events = told(desk.world, desk.workspace_id)
    assert all(data["psbt_id"] for _, data in events)
    return [(what.partition(".")[2], data["trouble"]) for what, data in events]


def listen(desk):
    kinds = ["proposal.troubled", "proposal.trouble_ended"]
    body = {"workspace_id": desk.workspace_id, "url": "https://hooks.example.org/", "kinds": kinds}
    ok(desk.admin.post("/api/v1/create-webhook", body))


def etag(desk, psbt_id):
    return desk.admin.get("/api/v1/psbt", workspace_id=1).headers["ETag"]


@pytest.mark.parametrize("is_sent", [False, True])
def test_p66_a_rival_in_the_mempool_is_named_at_once_and_until_it_has_gone(desk, psbt_id, is_sent):
    if is_sent:
        broadcasting(desk, psbt_id)
    assert trouble(desk, psbt_id) is None
    listen(desk)
    before = etag(desk, psbt_id)
    rival = outside_spend(desk, psbt_id)
    desk.chain.broadcast(rival)
    desk.watcher.look()
    found = trouble(desk, psbt_id)
    assert (found["kind"], found["txid"], found["psbt_id"]) == ("conflict", rival.txid, None)
    assert (found["advice"], rival.txid in found["words"]) == ("bump", True)
    assert etag(desk, psbt_id) != before
    decided = desk.proposal(psbt_id)["status"]
    assert decided == ("BROADCASTING" if is_sent else "PENDING"), "an unconfirmed rival decides nothing yet"
    desk.watcher.look()
    assert told_of(desk) == [("troubled", "conflict")], "once"
    forget_mempool(desk)
    desk.watcher.look()
    assert trouble(desk, psbt_id) is None
    assert told_of(desk)[1:] == [("trouble_ended", "conflict")]
    desk.chain.broadcast(rival)
    desk.watcher.look()
    mine_branch(desk.chain, 0, 1, [rival])
    desk.watcher.look()
    found = trouble(desk, psbt_id)
    assert (found["kind"], found["txid"], found["advice"]) == ("double-spent", rival.txid, "none")
    shown, (vault,) = desk.proposal(psbt_id), desk.wallets()
    assert (shown["status"], shown["failure_code"]) == ("INVALIDATED", "coin-spent")
    assert (vault["locked_sats"], vault["confirmed_sats"]) == (0, 0)
    refused(desk.submit("carol", psbt_id, desk.signed("carol", psbt_id)), 409, "STATE_CONFLICT")
    assert told_of(desk)[2:] == [("troubled", "conflict"), ("troubled", "double-spent")]


def test_p66_a_rival_of_the_workspaces_own_is_named_by_its_proposal(desk, psbt_id):
    """Signers finished a cancelled one without the platform, after its coin had gone to another."""
    transaction = signed_outside(desk, psbt_id)
    coins = list(map(str, desk.coins(psbt_id)))
    ok(cancel(desk, psbt_id))
    second = made(desk.propose(140_000, coins=coins))
    desk.chain.broadcast(transaction)
    desk.watcher.look()
    found = trouble(desk, second)
    assert (found["kind"], found["psbt_id"]) == ("conflict", psbt_id)
    assert trouble(desk, psbt_id) is None


def test_versions_of_one_payment_are_no_trouble(desk, sent):
    newer = made(bump(desk, sent, fee_rate="9"))
    desk.watcher.look()
    assert (trouble(desk, newer), trouble(desk, sent)) == (None, None)
    finished(desk, newer)
    desk.watcher.look()
    assert (trouble(desk, newer), trouble(desk, sent)) == (None, None)
    older = final(desk, sent)
    forget_mempool(desk)
    desk.chain.broadcast(older)
    desk.watcher.look()
    found = trouble(desk, newer)
    assert (found["kind"], found["psbt_id"]) == ("conflict", sent), "the mempool has the one that pays less"


def test_what_the_mempool_dropped_is_said_until_it_is_back_and_what_is_slow_until_it_is_mined(desk, sent):
    forget_mempool(desk)
    desk.world.clock.advance(minutes=2)
    desk.watcher.look()
    assert (kind(desk, sent), trouble(desk, sent)["advice"]) == ("not-in-mempool", "resend")
    desk.settle()
    assert trouble(desk, sent) is None
    assert desk.proposal(sent)["status"] == "BROADCASTING"
    listen(desk)
    for hours, expected in ((1, None), (2, "slow")):
        desk.later(hours=hours)
        desk.chain.mine(1, empty=True)
        desk.watcher.look()
        assert kind(desk, sent) == expected
    found = trouble(desk, sent)
    assert found["advice"] == "bump"
    assert found["words"].startswith("It pays 1")
    assert "the chain asks for 2" in found["words"]
    desk.mine()
    assert desk.proposal(sent)["status"] == "CONFIRMED"
    (row,) = desk.rows(ProposalRow, ProposalRow.id == sent)
    assert (row.trouble, row.trouble_since) == (None, None)
    assert told_of(desk) == [("troubled", "slow"), ("trouble_ended", "slow")]


def test_what_has_ended_otherwise_is_no_trouble_any_more(desk, psbt_id):
    listen(desk)
    desk.chain.broadcast(outside_spend(desk, psbt_id))
    desk.watcher.look()
    assert kind(desk, psbt_id) == "conflict"
    ok(cancel(desk, psbt_id))
    assert trouble(desk, psbt_id) is None
    assert told_of(desk) == [("troubled", "conflict"), ("trouble_ended", "conflict")]


def test_a_payment_whose_deposit_left_the_chain_says_so_and_can_be_ended(desk):
    """Its coins are gone: no self-spend takes it back. The deposit may return: it is not over."""
    desk.deposit(300_000)
    lost = desk.batch((desk.vault["receive_address"], 500_000), blocks=1)
    psbt_id = made(desk.propose(150_000, coins=[coin_of(desk, lost)]))
    broadcasting(desk, psbt_id)
    desk.world.clock.advance(seconds=1)
    child = made(desk.propose(100_000, coins=[coin_of(desk, desk.proposal(psbt_id)["txid"])]))
    broadcasting(desk, child)
    desk.take_deposit_back(lost)
    desk.settle()
    found = trouble(desk, psbt_id)
    assert (found["kind"], found["advice"]) == ("coin-missing", "cancel")
    assert desk.proposal(psbt_id)["status"] == "BROADCASTING"
    assert kind(desk, child) == "coin-missing", "what spends its change cannot be mined without it"
    ended = ok(cancel(desk, psbt_id, release_coins=True))
    assert (ended["status"], ended["coins_kept"]) == ("CANCELLED", False)
    ok(cancel(desk, child, release_coins=True))
    (vault,) = desk.wallets()
    assert (vault["detailed_vault_limits"]["Used"], vault["locked_sats"]) == ("0.00000000", 0)


def coin_of(desk, txid):
    """The vault's coin that the transaction makes."""
    (row,) = desk.rows(ChainCoinRow, ChainCoinRow.txid == txid)
    return f"{row.txid}:{row.vout}"
