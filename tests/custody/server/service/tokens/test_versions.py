"""Bumps, self-spends and children of a token's transaction (ADR 15): input 0, the data and the call stay what
they are.
"""

import pytest

from custody.server.store.models import Contract, ContractCall, Proposal
from multisig import RECEIVE, Psbt
from multisig.tokens.machine import Cell
from tests.custody.server.service.tokens.conftest import a_coin, a_token
from tests.support.custody import SHOP, Desk, ok, refused
from tests.support.prepared import Story, nothing
from tests.support.replacing import accelerate, bump, cancel, lets_through, made, status, take_back
from tests.support.token_desk import BOB, BOB_SCRIPT, TokenDesk


def psbt_of(tokens, psbt_id) -> Psbt:
    return Psbt.parse(tokens.desk.proposal(psbt_id)["psbt_base64"])


def first_input(tokens, psbt_id):
    return psbt_of(tokens, psbt_id).tx.inputs[0].outpoint


def data(tokens, psbt_id):
    return [out.script_pubkey for out in psbt_of(tokens, psbt_id).outputs if out.amount == 0]


def returns(tokens, psbt_id):
    own = tokens.desk.policy.script_pubkey(RECEIVE, 0)
    return [out.amount for out in psbt_of(tokens, psbt_id).outputs if out.script_pubkey == own]


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
    before = [item.outpoint for item in psbt_of(small, first).tx.inputs]
    second = made(bump(small.desk, first, fee_rate="8"))
    after = [item.outpoint for item in psbt_of(small, second).tx.inputs]
    assert after[: len(before)] == before
    third = made(bump(small.desk, second, fee_rate="20"))
    assert [item.outpoint for item in psbt_of(small, third).tx.inputs][: len(after)] == after
    assert data(small, first) == data(small, second) == data(small, third)
    assert len(returns(small, third)) == 1
    record = small.desk.proposal(third)
    assert (record["tx_type"], record["op_return"]) == ("deploy", small.desk.proposal(first)["op_return"])
    assert small.finish(third)["status"] == "CONFIRMED"
    (contract,) = small.desk.rows(Contract)
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
    (call,) = tokens.desk.rows(ContractCall, ContractCall.function_name == "transfer")
    assert (call.uid, call.family_id) == (asked["call_uid"], asked["psbt_id"])
    tokens.check()


def test_a_mint_that_is_bumped_counts_for_no_role_and_its_self_spend_does(tokens, uid):
    first = made(tokens.call(uid, "mint", BOB, 5))
    second = made(bump(tokens.desk, first, fee_rate="8"))
    third = made(take_back(tokens.desk, second, fee_rate="20"))
    with tokens.desk.world.platform.services.store.read() as db:
        counted = [db.get_one(Proposal, each).counts_for_role for each in (first, second, third)]
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


def a_waiting_call(desk: Desk) -> None:
    """A transfer of a token that waits in the mempool."""
    a_token(desk)
    tokens = TokenDesk(desk)
    tokens.look()
    tokens.finish(made(tokens.call(1, "transfer", BOB, 40, priority="low")), blocks=0)


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    names = request.fixturenames
    if "waiting" in names:
        return a_waiting_call
    return a_token if "uid" in names else a_coin if "tokens" in names else nothing


@pytest.fixture
def waiting(uid, tokens) -> tuple[int, str]:
    """The token, and the transfer."""
    (call,) = tokens.desk.rows(ContractCall, ContractCall.function_name == "transfer")
    return uid, call.family_id


def child_of(tokens, psbt_id, rate) -> str:
    """On the network."""
    child = made(accelerate(tokens.desk, psbt_id, fee_rate=rate))
    tokens.finish(child, blocks=0)
    return child


def require_next_call(tokens, uid, *psbt_ids) -> None:
    """All of them are mined, and the next call finds its coin at the address."""
    tokens.mine()
    assert status(tokens.desk, *psbt_ids) == ["CONFIRMED"] * len(psbt_ids)
    ok(tokens.call(uid, "pause"))
    tokens.check()


@pytest.mark.parametrize("newer", [bump, take_back])
def test_what_replaces_a_child_leaves_its_change_at_the_address(tokens, waiting, newer):
    uid, first = waiting
    child = child_of(tokens, first, "20")
    second = made(newer(tokens.desk, child, fee_rate="60"))
    third = made(bump(tokens.desk, second, fee_rate="90"))
    assert len(returns(tokens, second)) == len(returns(tokens, third)) == 1
    assert lets_through(tokens.desk, second, [child])
    assert lets_through(tokens.desk, third, [child, second])
    tokens.finish(third, blocks=0)
    require_next_call(tokens, uid, first, third)
    assert tokens.balance(BOB_SCRIPT) == 40


def test_a_child_gets_a_child(tokens, waiting):
    uid, first = waiting
    child = child_of(tokens, first, "10")
    second = child_of(tokens, child, "30")
    bumped = made(bump(tokens.desk, second, fee_rate="200"))
    assert [len(returns(tokens, each)) for each in (child, second, bumped)] == [1, 1, 1]
    tokens.finish(bumped, blocks=0)
    require_next_call(tokens, uid, first, child, bumped)


def test_what_takes_a_call_back_gets_a_child(tokens, waiting):
    uid, first = waiting
    back = made(take_back(tokens.desk, first, fee_rate="8"))
    tokens.finish(back, blocks=0)
    child = child_of(tokens, back, "60")
    assert len(returns(tokens, child)) == 1
    require_next_call(tokens, uid, back, child)
    assert tokens.balance(BOB_SCRIPT) == 0


def test_what_a_send_pays_to_the_address_is_no_change_of_it(tokens):
    """A payment, by its PSBT, which no child takes away: the child spends the change beside it, and returns
    it as change.
    """
    first = made(tokens.desk.propose(50_000, recipients=[tokens.address], fee_rate="2"))
    tokens.finish(first, blocks=0)
    child = child_of(tokens, first, "20")
    (spent,) = psbt_of(tokens, child).tx.inputs
    paid = psbt_of(tokens, first).outputs[spent.outpoint.vout]
    assert paid.script_pubkey != tokens.desk.policy.script_pubkey(RECEIVE, 0)
    assert returns(tokens, child) == []
    tokens.mine()
    assert status(tokens.desk, first, child) == ["CONFIRMED", "CONFIRMED"]
