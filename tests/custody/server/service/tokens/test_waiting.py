"""Calls behind other calls. Of two at one moment that exceed a balance together one passes, and a coin begins
one of two.

A deployment or a call that ended and was made again is one contract or one call, whatever the chain then
shows.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from custody.server.service.tokens.index_reading import contracts_by_id
from tests.support.custody import ok, refused
from tests.support.replacing import cancel
from tests.support.token_desk import BOB, BOB_SCRIPT, EVE


@pytest.fixture
def together():
    with ThreadPoolExecutor(2) as pool:

        def run(*asked):
            waiting = [pool.submit(each) for each in asked]
            return sorted(
                (answer.status_code, answer.json().get("code")) for answer in (w.result() for w in waiting)
            )

        yield run


def test_p16_of_two_calls_over_one_coin_one_passes(tokens, uid, together):
    answers = together(
        lambda: tokens.call(uid, "transfer", BOB, 1), lambda: tokens.call(uid, "transfer", EVE, 1)
    )
    assert answers == [(200, None), (409, "LOCKED_FUNDS")]


def test_p17_of_two_calls_that_exceed_a_balance_together_one_passes(tokens, uid, together):
    tokens.fund(100_000, 100_000)
    answers = together(
        lambda: tokens.call(uid, "transfer", BOB, 500), lambda: tokens.call(uid, "transfer", EVE, 500)
    )
    assert answers == [(200, None), (409, "LOCKED_FUNDS")]


def test_p31_of_two_mints_beyond_the_maximum_one_passes(tokens, uid, together):
    tokens.fund(100_000, 100_000)
    answers = together(lambda: tokens.call(uid, "mint", BOB, 60), lambda: tokens.call(uid, "mint", EVE, 60))
    assert answers == [(200, None), (422, "VALIDATION")]


OFTEN = 6


def made_again(desk, propose) -> list[dict]:
    """All answers, the last of which stands."""
    answers = [ok(propose())]
    for _ in range(OFTEN):
        ok(cancel(desk, answers[-1]["psbt_id"]))
        answers.append(ok(propose()))
    return answers


def test_one_transaction_on_the_chain_deploys_one_contract_and_its_limit_holds_once(tokens):
    tokens.fund(100_000, 100_000, 100_000)
    *ended, last = made_again(tokens.desk, tokens.create)
    assert tokens.finish(last["psbt_id"])["status"] == "CONFIRMED"
    asked = {"workspace_id": tokens.desk.workspace_id, "vault_id": tokens.desk.vault["id"]}
    shown = {row["contract_uid"]: row for row in ok(tokens.desk.admin.get("/api/v1/contracts", **asked))}
    assert [shown[each["contract_uid"]]["status"] for each in ended] == ["FAILED"] * OFTEN
    contract_id = tokens.desk.proposal(last["psbt_id"])["txid"]
    assert [row["contract_id"] for row in shown.values() if row["contract_id"]] == [contract_id]
    with tokens.desk.world.platform.services.store.read() as db:
        (known,) = contracts_by_id(db, "regtest", [contract_id]).values()
        assert known.uid == last["contract_uid"]
    tokens.done(last["contract_uid"], "init")
    tokens.limit_role("3")
    ok(tokens.call(last["contract_uid"], "transfer", BOB, 300))
    refused(tokens.call(last["contract_uid"], "transfer", EVE, 1), 403, "ROLE_LIMIT_EXCEEDED")
    for each in ended:
        refused(tokens.call(each["contract_uid"], "transfer", BOB, 1), 409, "DEPLOYMENT_NOT_CONFIRMED")
    tokens.check()


def test_one_transaction_on_the_chain_is_one_call(tokens, uid):
    *ended, last = made_again(tokens.desk, lambda: tokens.call(uid, "transfer", BOB, 100))
    assert tokens.finish(last["psbt_id"])["status"] == "CONFIRMED"
    asked = {"workspace_id": tokens.desk.workspace_id, "contract_uid": uid}
    rows = ok(tokens.desk.admin.get("/api/v1/contract-calls", **asked))
    statuses = {row["UID"]: row["Status"] for row in rows if row["FunctionName"] == "transfer"}
    assert statuses.pop(last["call_uid"]) == "CONFIRMED"
    assert sorted(statuses) == [each["call_uid"] for each in ended]
    assert "CONFIRMED" not in statuses.values()
    assert tokens.balance(BOB_SCRIPT) == 100
    tokens.limit_role("2")
    ok(tokens.call(uid, "transfer", BOB, 100))
    tokens.check()
