"""Sends from a vault with tokens: one confirmed coin stays at its address, and others are spent first."""

import pytest

from multisig import RECEIVE
from tests.support.custody import SHOP, neighbour_of, ok, refused
from tests.support.replacing import bump, made
from tests.support.token_desk import BOB, TokenDesk


def spends_at_address(tokens, psbt_id) -> int:
    own = tokens.desk.policy.script_pubkey(RECEIVE, 0)
    return sum(item.witness_utxo.script_pubkey == own for item in tokens.desk.psbt(psbt_id).inputs)


@pytest.fixture
def owner(tokens):
    """A vault that made a token, with one coin at its address and another one elsewhere."""
    tokens.deployed()
    tokens.desk.deposit(100_000, to=tokens.desk.policy.address(1, 0))
    return tokens


def test_other_coins_go_first_and_the_last_one_stays_unless_the_send_leaves_something_there(owner):
    for data in ("CPT", "0x43505412", "CPT anything"):
        # P30: only the endpoints of tokens make a call.
        refused(owner.desk.propose(recipients=[], op_return=data), 422, "VALIDATION")
    made = ok(owner.desk.propose(50_000))["psbt_id"]
    assert spends_at_address(owner, made) == 0
    owner.desk.reject(made)
    problem = refused(owner.desk.propose(150_000), 422, "INSUFFICIENT_FUNDS")
    assert "keeps at its address for its tokens" in problem["detail"]
    made = ok(owner.desk.propose(150_000, 10_000, recipients=[BOB, owner.address]))["psbt_id"]
    assert spends_at_address(owner, made) == 1
    owner.desk.reject(made)
    psbt_id = ok(owner.desk.sweep(BOB))["psbt_id"]
    assert len(owner.desk.coins(psbt_id)) == 1
    assert spends_at_address(owner, psbt_id) == 0, "everything is sent without the one that stays"
    refused(owner.desk.sweep(BOB), 409, "LOCKED_FUNDS")
    owner.desk.reject(psbt_id)
    owner.fund(120_000)
    made = ok(owner.desk.propose(200_000))["psbt_id"]
    assert spends_at_address(owner, made) == 1, "of several one stays"
    ok(owner.call(1, "init"))


@pytest.mark.parametrize(("function", "amount"), [("transfer", [5]), ("transfer_ownership", [])])
def test_who_was_paid_some_or_handed_one_by_another_vault_of_the_workspace_keeps_one_too(
    tokens, uid, function, amount
):
    other = ok(tokens.desk.create_vault("Other"))
    tokens.desk.deposit(90_000, to=other["address"])
    ok(tokens.desk.propose(50_000, wallet_id=other["id"]))
    tokens.look()
    tokens.done(uid, function, other["address"], *amount)
    tokens.desk.deposit(90_000, to=other["address"])
    refused(tokens.desk.propose(50_000, wallet_id=other["id"]), 422, "INSUFFICIENT_FUNDS")


@pytest.mark.parametrize(("function", "amount"), [("transfer", [1]), ("transfer_ownership", [])])
def test_what_a_stranger_sends_or_hands_over_reserves_nothing(tokens, function, amount):
    """Any sender who knows the address can do it, and the reserved coins could never be spent again."""
    uid = tokens.started(token_name="Free gift")
    neighbour = TokenDesk(neighbour_of(tokens.desk))
    neighbour.fund(90_000)
    tokens.done(uid, function, neighbour.address, *amount)
    made = ok(neighbour.desk.propose(50_000))["psbt_id"]
    assert spends_at_address(neighbour, made) == 1


def test_a_bump_takes_the_coins_that_a_send_would(desk):
    """All coins at the address but the one that stays."""
    tokens = TokenDesk(desk)
    tokens.fund(60_000, 300_000)
    tokens.deployed()
    desk.deposit(100_000)
    first = made(desk.propose(98_000, recipients=[SHOP], fee_rate="2"))
    kept = ok(desk.admin.get("/api/v1/max-send", workspace_id=1, wallet_id=desk.vault["id"], recipients=SHOP))
    version = desk.psbt(made(bump(desk, first, fee_rate="60")))
    spent = [item.witness_utxo.amount for item in version.inputs]
    assert sorted(spent) == [100_000, 300_000]
    assert kept["kept_sats"] not in spent
    assert kept["kept_sats"] >= 10_000


def test_a_token_waits_for_the_coins_that_a_send_has_locked(desk):
    tokens = TokenDesk(desk)
    tokens.fund(700)
    refused(tokens.create(), 422, "INSUFFICIENT_FUNDS")
    desk.deposit(100_000)
    made(desk.propose(90_000, recipients=[SHOP], fee_rate="2"))
    assert "by other proposals" in refused(tokens.create(), 409, "LOCKED_FUNDS")["detail"]
