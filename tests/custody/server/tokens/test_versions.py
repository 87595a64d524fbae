"""Bumps and self-spends of a token's transaction (ADR 15): input 0, the data and the call stay what
they are.
"""

import pytest

from custody.server.store.models import ContractCallRow, ContractRow, ProposalRow
from multisig import RECEIVE
from multisig.tokens.machine import Cell
from tests.support.custody import SHOP, ok, refused
from tests.support.replacing import bump, cancel, made, status, take_back
from tests.support.token_desk import BOB, BOB_SCRIPT


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
