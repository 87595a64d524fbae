"""A vault's tokens and its coins: one confirmed coin stays at its address, and others are spent first. Bumps
and self-spends of a token's transaction (ADR 15): input 0, the data and the call stay what they are.
"""

import pytest

from custody.server.store.models import ContractCallRow, ContractRow, ProposalRow
from multisig import RECEIVE
from multisig.tokens.machine import Cell
from tests.support.custody import SHOP, neighbour_of, ok, refused
from tests.support.history import listed_coins
from tests.support.replacing import bump, cancel, made, status, take_back
from tests.support.token_desk import BOB, BOB_SCRIPT, TokenDesk


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
    states = {each["address"]: each["state"] for each in listed_coins(owner.desk)}
    assert states.pop(owner.address) == "kept-for-tokens"
    assert {*states.values()} == {"spendable"}
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


def test_a_token_waits_for_the_coins_that_a_send_has_locked(desk):
    tokens = TokenDesk(desk)
    tokens.fund(700)
    refused(tokens.create(), 422, "INSUFFICIENT_FUNDS")
    desk.deposit(100_000)
    holder = made(desk.propose(90_000, recipients=[SHOP], fee_rate="2"))
    assert f"are locked by proposal {holder}." in refused(tokens.create(), 409, "LOCKED_FUNDS")["detail"]


def first_input(tokens, psbt_id):
    return tokens.desk.psbt(psbt_id).tx.inputs[0].outpoint


def data(tokens, psbt_id):
    return [out.script_pubkey for out in tokens.desk.psbt(psbt_id).outputs if out.amount == 0]


def returns(tokens, psbt_id):
    own = tokens.desk.policy.script_pubkey(RECEIVE, 0)
    return [out.amount for out in tokens.desk.psbt(psbt_id).outputs if out.script_pubkey == own]


@pytest.fixture
def small(tokens_at_none):
    """Its coin at the address brings another one along, which is larger and whose id may come before."""
    tokens_at_none.fund(600)
    for _ in range(3):
        tokens_at_none.desk.deposit(5_000, to=tokens_at_none.desk.policy.address(1, 0))
    return tokens_at_none


def test_a_bump_keeps_the_first_input_the_order_and_the_data(small):
    first = made(small.create())
    refused(bump(small.desk, first, fee_rate="8", op_return="0x435054"), 422, "VALIDATION")
    paying = {"recipients": [SHOP], "amounts_sats": [1_000]}
    refused(bump(small.desk, first, fee_rate="8", **paying), 422, "VALIDATION")
    before = [item.outpoint for item in small.desk.psbt(first).tx.inputs]
    second = made(bump(small.desk, first, fee_rate="8"))
    after = [item.outpoint for item in small.desk.psbt(second).tx.inputs]
    assert after[: len(before)] == before
    third = made(bump(small.desk, second, fee_rate="20"))
    assert [item.outpoint for item in small.desk.psbt(third).tx.inputs][: len(after)] == after
    assert data(small, first) == data(small, second) == data(small, third)
    assert len(returns(small, third)) == 1
    record = small.desk.proposal(third)
    assert (record["tx_type"], record["op_return"]) == ("deploy", small.desk.proposal(first)["op_return"])
    assert small.finish(third)["status"] == "CONFIRMED"
    (contract,) = small.desk.rows(ContractRow)
    assert contract.deploy_family_id == first
    own = small.desk.policy.script_pubkey(RECEIVE, 0)
    assert small.cells()[record["txid_expected"], Cell.OWNER, b""] == own
    ok(small.call(1, "init"))
    small.check()


def test_a_call_is_bumped_and_is_one_call(tokens, uid):
    asked = ok(tokens.call(uid, "transfer", BOB, 40, recipients=[BOB]))
    second = made(bump(tokens.desk, asked["psbt_id"], fee_rate="8"))
    assert first_input(tokens, second) == first_input(tokens, asked["psbt_id"])
    record = tokens.desk.proposal(second)
    assert (record["tx_type"], record["recipients"]) == ("call", [BOB])
    refused(tokens.call(uid, "pause"), 409, "LOCKED_FUNDS")
    assert tokens.finish(second)["status"] == "CONFIRMED"
    assert status(tokens.desk, asked["psbt_id"]) == ["INVALIDATED"]
    assert tokens.balance(BOB_SCRIPT) == 40
    (call,) = tokens.desk.rows(ContractCallRow, ContractCallRow.function_name == "transfer")
    assert (call.uid, call.family_id) == (asked["call_uid"], asked["psbt_id"])
    tokens.check()


def test_a_mint_that_is_bumped_counts_for_no_role_and_its_self_spend_does(tokens, uid):
    first = made(tokens.call(uid, "mint", BOB, 5))
    second = made(bump(tokens.desk, first, fee_rate="8"))
    third = made(take_back(tokens.desk, second, fee_rate="20"))
    with tokens.desk.store.read() as db:
        counted = [db.get_one(ProposalRow, each).counts_for_role for each in (first, second, third)]
    assert counted == [False, False, True]


def test_a_self_spend_takes_the_call_back_and_leaves_its_coin_at_the_address(tokens, uid):
    first = made(tokens.call(uid, "transfer", BOB, 40))
    tokens.desk.approve("alice", first)
    assert ok(cancel(tokens.desk, first))["self_spend_offered"]
    problem = refused(tokens.call(uid, "transfer", BOB, 900), 409, "LOCKED_FUNDS")
    assert "one call" in problem["detail"], "with a signature out it may still be mined"
    back = made(take_back(tokens.desk, first, fee_rate="8"))
    assert (data(tokens, back), len(returns(tokens, back))) == ([], 1)
    assert tokens.finish(back)["status"] == "CONFIRMED"
    assert tokens.balance(BOB_SCRIPT) == 0
    ok(tokens.call(uid, "transfer", BOB, 900))
    tokens.check()
