"""Tokens as they are read back: nothing of it is stored, all follows from the proposals and the chain."""

from hashlib import sha256

import pytest
from sqlalchemy import select

from custody.server.domain.errors import ChainUnavailable
from custody.server.service.jobs.outbox import BROADCAST
from custody.server.store.models import AddressBookEntryRow, JobRow
from multisig import Network, Transaction, encode_address
from multisig.tokens import Deploy, check_deployment, parse_bytecode, token_of_script
from tests.support.custody import ok, refused
from tests.support.regtest import open_address
from tests.support.token_reading import TokenReadingDesk
from tests.support.wallets import foreign_script

BOB = foreign_script("bob")
BOBS = encode_address(BOB, Network.REGTEST)


@pytest.fixture
def tokens(desk):
    return TokenReadingDesk(desk)


def test_p33_a_deployment_from_its_proposal_to_the_chain_and_back(tokens):
    token = tokens.create()
    record = tokens.contract(token)
    assert (record["status"], record["contract_id"], record["deployment_hex"]) == ("PENDING", None, None)
    assert (record["bytecode_hash"], record["network"], record["deploy_psbt_id"]) == (None, None, None)
    assert [signer["is_signed"] for signer in record["signers"]] == [False, False, False]
    tokens.approve(token.psbt_id)
    tokens.look()
    record = tokens.contract(token)
    assert (record["status"], record["contract_id"]) == ("BROADCASTING", token.txid)
    assert sorted(signer["is_signed"] for signer in record["signers"]) == [False, True, True]
    tokens.mine()
    assert tokens.contract(token)["status"] == "CONFIRMED"
    tokens.desk.chain.reorganise(1, 2)
    tokens.look()
    assert tokens.contract(token)["status"] == "BROADCASTING"
    tokens.mine()
    record = tokens.contract(token)
    assert record["status"] == "CONFIRMED"
    # Anybody proves the token from its record alone.
    transaction = Transaction.parse(bytes.fromhex(record["deployment_hex"]))
    assert transaction.txid == record["contract_id"]
    payloads = [token_of_script(output.script_pubkey) for output in transaction.outputs]
    (deploy,) = [payload for payload in payloads if isinstance(payload, Deploy)]
    check_deployment(deploy, parse_bytecode(record["bytecode"].encode()))
    assert deploy.bytecode_hash.hex() == record["bytecode_hash"]


def test_lists_have_no_bytes_and_come_in_pages(tokens):
    first, second = tokens.create(), tokens.create(ticker="SILVER")
    tokens.carry_out(first.psbt_id)
    records = tokens.read("contracts", vault_id=tokens.desk.vault["id"])
    assert [(record["contract_uid"], record["status"]) for record in records] == [
        (first.uid, "CONFIRMED"),
        (second.uid, "PENDING"),
    ]
    assert all(record["bytecode"] is None and record["deployment_hex"] is None for record in records)
    for query, expected in (
        ({}, [first, second]),
        ({"limit": 1}, [first]),
        ({"after": first.uid}, [second]),
    ):
        listed = tokens.read("workspace-contracts", **query)
        assert [one["contract_uid"] for one in listed] == [each.uid for each in expected], query
    (one,) = tokens.read("get-workspace-whitelist", contract_uid=second.uid)["contracts"]
    assert one["symbol"] == "SILVER"


def test_p35_a_reorganisation_drops_a_confirmed_call_and_restores_the_balances(tokens):
    token = tokens.started()
    before = tokens.balances()
    uid, psbt_id = tokens.call(token, "transfer", 40, BOB)
    tokens.carry_out(psbt_id)
    (call,) = [call for call in tokens.calls(token) if call["UID"] == uid]
    assert (call["Status"], call["FailureReason"]) == ("CONFIRMED", None)
    assert call["ConfirmedAt"] is not None
    assert tokens.balances()[0]["balance"] == "99960"
    tokens.desk.chain.reorganise(1, 2)
    tokens.look()
    (call,) = [call for call in tokens.calls(token) if call["UID"] == uid]
    assert (call["Status"], call["ConfirmedAt"]) == ("BROADCASTING", None)
    assert tokens.balances() == before


def test_p34_a_tokens_transaction_is_confirmed_everywhere_at_once(tokens):
    """When the index has read its block: in the proposal, in the token's record, and for ``init``."""

    def seen(token):
        answer = tokens.asking.call(token.uid, "init")
        status = tokens.desk.proposal(token.psbt_id)["status"], tokens.contract(token)["status"]
        return *status, answer.json().get("code", "proposed")

    token = tokens.create()
    tokens.asking.fund()
    tokens.approve(token.psbt_id)
    tokens.look()
    tokens.desk.mine(2)
    assert seen(token)[:2] == ("BROADCASTING", "BROADCASTING")
    tokens.indexer.look()
    assert seen(token) == ("BROADCASTING", "BROADCASTING", "DEPLOYMENT_NOT_CONFIRMED")
    tokens.desk.watcher.look()
    assert seen(token) == ("CONFIRMED", "CONFIRMED", "proposed")
    record = tokens.desk.proposal(token.psbt_id)
    block = tokens.desk.chain.block_at(record["block_height"])
    assert (record["confirmations"], record["block_hash"]) == (2, block.hash)
    uid, psbt_id = tokens.calls(token)[0]["UID"], tokens.calls(token)[0]["PsbtID"]
    tokens.approve(psbt_id)
    tokens.look()
    tokens.desk.mine()
    tokens.indexer.look()
    tokens.desk.watcher.look()
    assert tokens.desk.proposal(psbt_id)["status"] == "CONFIRMED"
    assert [call["Status"] for call in tokens.calls(token) if call["UID"] == uid] == ["CONFIRMED"]


def test_a_mined_call_without_effect_has_failed_and_says_by_which_rule(tokens):
    token = tokens.started()
    _, declined = tokens.call(token, "pause")
    # Judged behind the pause, and then mined without it.
    _, psbt_id = tokens.call(token, "unpause")
    tokens.carry_out(psbt_id)
    call = tokens.calls(token)[-1]
    assert call["Status"] == "FAILED"
    assert call["FailureReason"] == "It was mined without effect: The token is not paused. (not-paused)"
    assert call["TxID"] == tokens.desk.proposal(psbt_id)["txid"]
    tokens.desk.reject(declined)
    call = tokens.calls(token)[-2]
    assert (call["Status"], call["TxID"]) == ("FAILED", None)
    assert "declined" in call["FailureReason"], "the proposal's reason"


def test_calls_come_in_slices_the_newest_first_too(tokens):
    token = tokens.started()
    for function in ("pause", "unpause", "pause"):
        tokens.call(token, function)
    query = {"workspace_id": tokens.desk.workspace_id, "vault_id": tokens.desk.vault["id"]}
    answer = tokens.desk.admin.get("/api/v1/contract-calls", **query, limit=3)
    assert answer.headers["X-Total-Count"] == "4"
    assert [call["FunctionName"] for call in answer.json()] == ["init", "pause", "unpause"]
    assert f"after={answer.json()[-1]['UID']}" in answer.headers["Link"]
    rest = tokens.desk.admin.get("/api/v1/contract-calls", **query, after=answer.json()[-1]["UID"])
    assert len(rest.json()) == 1
    assert "Link" not in rest.headers
    newest = tokens.read("contract-calls", contract_uid=token.uid, order="newest")
    assert newest == tokens.calls(token)[::-1]
    after = newest[0]["UID"]
    assert tokens.read("contract-calls", contract_uid=token.uid, order="newest", after=after) == newest[1:]
    del query["vault_id"]
    refused(tokens.desk.admin.get("/api/v1/contract-calls", **query), 422, "VALIDATION")


def test_what_a_vault_holds_and_owns_and_what_the_token_is_by_now(tokens):
    """The supply is one figure wherever it is told."""
    token = tokens.create()
    assert "state" not in tokens.contract(token)
    first = int(tokens.contract(token)["total_supply"])
    tokens.look()
    assert tokens.balances() == []
    tokens.carry_out(token.psbt_id)
    owner = tokens.desk.vault["address"]
    told = {"started": False, "paused": False, "whitelist_on": False, "owner_address": owner}
    assert tokens.contract(token)["state"] == told
    (waiting,) = tokens.balances()
    assert (waiting["balance"], waiting["total_supply"], waiting["owned"]) == ("0", "0", True)
    tokens.carry_out(tokens.call(token, "init")[1])
    (held,) = tokens.balances()
    assert (held["balance"], held["owned"], held["contract_address"]) == ("100000", True, token.txid)
    assert (held["total_supply"], held["max_supply"], held["contract_uid"]) == ("100000", "500000", token.uid)

    tokens.carry_out(tokens.call(token, "mint", 40, token.code.owner_script)[1])
    listed = tokens.read("contracts", vault_id=tokens.desk.vault["id"])
    supplies = [each["total_supply"] for each in (tokens.contract(token), *listed, *tokens.balances())]
    assert supplies == [str(first + 40)] * 3
    tokens.asking.limit("21000000")
    tokens.carry_out(tokens.call(token, "burn", first + 39, token.code.owner_script)[1])
    assert [each["total_supply"] for each in (tokens.contract(token), *tokens.balances())] == ["1", "1"]
    for function in ("pause", "enable_whitelist"):
        tokens.carry_out(tokens.call(token, function)[1])
    told |= {"started": True, "paused": True, "whitelist_on": True}
    assert tokens.contract(token)["state"] == told
    tokens.carry_out(tokens.call(token, "transfer_ownership", to=BOB)[1])
    (held,) = tokens.balances()
    assert (held["balance"], held["owned"]) == ("1", False)


def test_p35_an_index_that_is_behind_or_on_a_branch_that_was_left_tells_no_balance_and_no_list(tokens):
    token = tokens.started()
    tokens.carry_out(tokens.call(token, "transfer", 40, BOB)[1])
    held = {"workspace_id": tokens.desk.workspace_id, "vault_id": tokens.desk.vault["id"]}
    tokens.desk.reorganise(1, 2)
    answer = tokens.desk.admin.get("/api/v1/get-tokens", **held)
    assert "another block" in refused(answer, 503, ChainUnavailable.code.value)["detail"]
    assert "another block" in tokens.read("get-workspace-whitelist")["contracts"][0]["error"]
    tokens.indexer.look()
    assert [each["balance"] for each in tokens.balances()] == ["100000"]

    tokens.desk.mine(2)
    refused(tokens.desk.admin.get("/api/v1/get-tokens", **held), 503, ChainUnavailable.code.value)
    lists = tokens.read("get-workspace-whitelist")
    assert "behind" in lists["contracts"][0]["error"]
    assert lists["contracts"][0]["addresses"] == lists["aggregate"] == []
    assert [each["vault_id"] for each in lists["vault_errors"]] == [tokens.desk.vault["id"]]
    tokens.indexer.look()
    assert tokens.read("get-workspace-whitelist")["contracts"][0]["contract_uid"] == token.uid


def test_the_workspaces_lists_have_the_books_names_and_each_address_once(tokens):
    listed, waiting = tokens.started(), tokens.create(ticker="SILVER")
    tokens.carry_out(tokens.call(listed, "add_to_whitelist", to=BOB)[1])
    with tokens.store.write() as db:
        now = tokens.desk.world.clock()
        entry = {"workspace_id": tokens.desk.workspace_id, "created_by": 1, "created_at": now}
        db.add(AddressBookEntryRow(name="Bob", name_key="bob", address=BOBS, **entry))
        db.add(AddressBookEntryRow(name="Nobody", name_key="nobody", address=open_address(9), **entry))
    lists = tokens.read("get-workspace-whitelist")
    own = tokens.desk.vault["address"]
    first, second = lists["contracts"]
    assert (first["contract_uid"], first["vault_name"], first["error"]) == (listed.uid, "Treasury", None)
    assert first["addresses"] == [{"address": own, "name": ""}, {"address": BOBS, "name": "Bob"}]
    assert (second["contract_uid"], second["addresses"]) == (waiting.uid, [])
    assert "not confirmed" in second["error"]
    assert {each["address"]: each["contract_uids"] for each in lists["aggregate"]} == {
        own: [listed.uid],
        BOBS: [listed.uid],
    }
    assert lists["vault_errors"] == []


def test_p15_a_stalled_call_is_sent_again_as_it_was_signed_and_once(tokens):
    """Signed while no node can be reached; whoever may not manage tokens sends nothing again."""
    token = tokens.started()
    uid, psbt_id = tokens.call(token, "pause")
    backends = tokens.desk.world.platform.background.backends
    away = dict(backends)
    backends.clear()
    tokens.approve(psbt_id)
    tokens.desk.outbox.run_due()
    backends.update(away)
    assert tokens.calls(token)[-1]["Status"] == "STALLED"
    before = tokens.desk.proposal(psbt_id)["psbt_base64"]
    body = {"call_uid": uid, "workspace_id": tokens.desk.workspace_id}
    again = "/api/v1/contract-calls/resubmit"
    refused(tokens.desk.signers["alice"].post(again, body), 403, "PERMISSION_DENIED")
    for _ in range(2):
        answer = ok(tokens.desk.admin.post(again, body))
        assert answer["txid"] == tokens.desk.proposal(psbt_id)["txid_expected"]
    with tokens.store.read() as db:
        due = select(JobRow).where(
            JobRow.kind == BROADCAST, JobRow.subject == psbt_id, JobRow.done_at.is_(None)
        )
        (job,) = db.scalars(due)
        assert job.run_at <= tokens.desk.world.clock()
    tokens.look()
    assert tokens.calls(token)[-1]["Status"] == "BROADCASTING"
    assert tokens.desk.proposal(psbt_id)["psbt_base64"] == before
    tokens.mine()
    refused(tokens.desk.admin.post(again, body), 409, "CALL_NOT_STALLED")
    assert tokens.calls(token)[-1]["Status"] == "CONFIRMED"
    actions = tokens.desk.world.audit_actions(f"workspace:{tokens.desk.workspace_id}")
    assert actions.count("CALL_RESUBMITTED") == 2


def test_the_proposals_record_says_what_its_own_bytes_do(tokens):
    token = tokens.started()
    uid, psbt_id = tokens.call(token, "transfer", 125, BOB)
    record = tokens.desk.proposal(psbt_id)
    assert (record["contract_uid"], record["call_uid"]) == (token.uid, uid)
    assert record["contract_ids"] == [token.txid]
    decoded = record["decoded_call"]
    assert (decoded["function"], decoded["amount_raw"], decoded["amount"]) == ("transfer", "125", "1.25")
    assert (decoded["ticker"], decoded["address"], decoded["contract_id"]) == ("GOLD", BOBS, token.txid)
    assert decoded["words"] == f"Send 1.25 GOLD tokens to {BOBS}."
    assert record["op_return"] == f"0x{decoded['data_hex']}"
    deployed = tokens.desk.proposal(token.psbt_id)
    assert (deployed["contract_uid"], deployed["call_uid"]) == (token.uid, None)
    assert deployed["contract_ids"] == [token.txid]
    assert deployed["decoded_call"]["total_supply"] == "1000.00"
    listed = (deployed["decoded_call"]["whitelist_count"], deployed["decoded_call"]["whitelist_hash"])
    assert listed == (0, sha256(b"[]").hexdigest())
    assert (decoded["whitelist_count"], decoded["whitelist_hash"]) == (None, None)
    tokens.desk.deposit(100_000)
    send = tokens.desk.propose(20_000).json()["psbt_id"]
    assert tokens.desk.proposal(send)["decoded_call"] is None
