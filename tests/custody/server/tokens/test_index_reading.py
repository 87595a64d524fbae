"""Tokens as they are read back: nothing of it is stored, all follows from the proposals and the chain."""

from hashlib import sha256

from sqlalchemy import select

from custody.server.jobs.outbox import BROADCAST
from custody.server.store.models import AddressBookEntryRow, JobRow, ProposalRow
from multisig import RECEIVE, Transaction
from multisig.tokens import Deploy, check_deployment, parse_bytecode, token_of_script
from multisig.tokens.machine import Cell
from tests.support.custody import ok, refused
from tests.support.regtest import open_address
from tests.support.token_desk import BOB, TokenDesk


def read(tokens: TokenDesk, path: str, **query):
    return ok(tokens.desk.admin.get(f"/api/v1/{path}", workspace_id=1, **query))


def contract(tokens: TokenDesk, uid: int) -> dict:
    return read(tokens, "contract", contract_uid=uid)


def calls(tokens: TokenDesk, **query) -> list[dict]:
    return read(tokens, "contract-calls", vault_id=tokens.desk.vault["id"], **query)


def balances(tokens: TokenDesk) -> list[dict]:
    return read(tokens, "get-tokens", vault_id=tokens.desk.vault["id"])


def test_p33_a_deployment_from_its_proposal_to_the_chain_and_back(tokens):
    made = ok(tokens.create())
    psbt_id, uid = made["psbt_id"], made["contract_uid"]
    record = contract(tokens, uid)
    assert (record["status"], record["contract_id"], record["deployment_hex"]) == ("PENDING", None, None)
    assert (record["bytecode_hash"], record["network"], record["deploy_psbt_id"]) == (None, None, None)
    assert [signer["is_signed"] for signer in record["signers"]] == [False, False, False]
    (proposal,) = tokens.desk.rows(ProposalRow)
    assert (proposal.movement_sats, proposal.counts_for_role) == (proposal.fee_sats, True)
    assert (proposal.tx_type, proposal.recipients) == ("deploy", [])
    txid = tokens.finish(psbt_id, blocks=0)["txid"]
    record = contract(tokens, uid)
    assert (record["status"], record["contract_id"]) == ("BROADCASTING", txid)
    assert sorted(signer["is_signed"] for signer in record["signers"]) == [False, True, True]
    tokens.mine()
    assert contract(tokens, uid)["status"] == "CONFIRMED"
    tokens.reorganise(1, 2)
    assert contract(tokens, uid)["status"] == "BROADCASTING"
    tokens.mine()
    record = contract(tokens, uid)
    assert record["status"] == "CONFIRMED"
    # Anybody proves the token from its record alone.
    transaction = Transaction.parse(bytes.fromhex(record["deployment_hex"]))
    assert transaction.txid == record["contract_id"]
    payloads = [token_of_script(output.script_pubkey) for output in transaction.outputs]
    (deploy,) = [payload for payload in payloads if isinstance(payload, Deploy)]
    known = parse_bytecode(record["bytecode"].encode())
    check_deployment(deploy, known)
    assert deploy.bytecode_hash.hex() == record["bytecode_hash"]
    assert known.owner_script == tokens.desk.policy.script_pubkey(RECEIVE, 0)
    cells = tokens.cells()
    assert cells[txid, Cell.OWNER, b""] == known.owner_script
    assert (txid, Cell.SUPPLY, b"") not in cells, "nothing exists before init"


def test_lists_have_no_bytes_and_come_in_pages(tokens, uid):
    tokens.fund()
    second = ok(tokens.create(ticker="SILVER"))["contract_uid"]
    records = read(tokens, "contracts", vault_id=tokens.desk.vault["id"])
    assert [(record["contract_uid"], record["status"]) for record in records] == [
        (uid, "CONFIRMED"),
        (second, "PENDING"),
    ]
    assert all(record["bytecode"] is None and record["deployment_hex"] is None for record in records)
    for query, expected in (({}, [uid, second]), ({"limit": 1}, [uid]), ({"after": uid}, [second])):
        listed = read(tokens, "workspace-contracts", **query)
        assert [one["contract_uid"] for one in listed] == expected, query
    (one,) = read(tokens, "get-workspace-whitelist", contract_uid=second)["contracts"]
    assert one["symbol"] == "SILVER"


def test_p35_a_reorganisation_drops_a_confirmed_call_and_restores_the_balances(tokens, uid):
    before = balances(tokens)
    tokens.done(uid, "transfer", BOB, 40)
    call = calls(tokens)[-1]
    assert (call["Status"], call["FailureReason"]) == ("CONFIRMED", None)
    assert call["ConfirmedAt"] is not None
    assert balances(tokens)[0]["balance"] == "860"
    tokens.reorganise(1, 2)
    call = calls(tokens)[-1]
    assert (call["Status"], call["ConfirmedAt"]) == ("BROADCASTING", None)
    assert balances(tokens) == before


def test_a_mined_call_without_effect_has_failed_and_says_by_which_rule(tokens, uid):
    tokens.fund()
    declined = ok(tokens.call(uid, "pause"))["psbt_id"]
    # Judged behind the pause, and then mined without it.
    mined = tokens.done(uid, "unpause")
    call = calls(tokens)[-1]
    assert call["Status"] == "FAILED"
    assert call["FailureReason"] == "It was mined without effect: The token is not paused. (not-paused)"
    assert call["TxID"] == mined["txid"]
    tokens.desk.reject(declined)
    call = calls(tokens)[-2]
    assert (call["Status"], call["TxID"]) == ("FAILED", None)
    assert "declined" in call["FailureReason"], "the proposal's reason"


def test_calls_come_in_slices_the_newest_first_too(tokens, uid):
    tokens.fund(*[50_000] * 3)
    for function in ("pause", "unpause", "pause"):
        ok(tokens.call(uid, function))
    query = {"workspace_id": 1, "vault_id": tokens.desk.vault["id"]}
    answer = tokens.desk.admin.get("/api/v1/contract-calls", **query, limit=3)
    assert answer.headers["X-Total-Count"] == "4"
    assert [call["FunctionName"] for call in answer.json()] == ["init", "pause", "unpause"]
    assert f"after={answer.json()[-1]['UID']}" in answer.headers["Link"]
    rest = tokens.desk.admin.get("/api/v1/contract-calls", **query, after=answer.json()[-1]["UID"])
    assert len(rest.json()) == 1
    assert "Link" not in rest.headers
    newest = calls(tokens, order="newest")
    assert newest == calls(tokens)[::-1] == read(tokens, "contract-calls", contract_uid=uid, order="newest")
    assert calls(tokens, order="newest", after=newest[0]["UID"]) == newest[1:]
    refused(tokens.desk.admin.get("/api/v1/contract-calls", workspace_id=1), 422, "VALIDATION")


def test_what_a_vault_holds_and_owns_and_what_the_token_is_by_now(tokens):
    """The supply is one figure wherever it is told."""
    assert balances(tokens) == []
    uid = tokens.deployed()
    told = {"started": False, "paused": False, "whitelist_on": False, "owner_address": tokens.address}
    assert contract(tokens, uid)["state"] == told
    (waiting,) = balances(tokens)
    assert (waiting["balance"], waiting["total_supply"], waiting["owned"]) == ("0", "0", True)
    tokens.done(uid, "init")
    (held,) = balances(tokens)
    assert (held["balance"], held["total_supply"], held["max_supply"]) == ("900", "900", "1000")
    assert held["contract_address"] == contract(tokens, uid)["contract_id"]

    tokens.done(uid, "mint", tokens.address, 40)
    listed = read(tokens, "contracts", vault_id=tokens.desk.vault["id"])
    supplies = [each["total_supply"] for each in (contract(tokens, uid), *listed, *balances(tokens))]
    assert supplies == ["940"] * 3
    for function in ("pause", "enable_whitelist"):
        tokens.done(uid, function)
    told |= {"started": True, "paused": True, "whitelist_on": True}
    assert contract(tokens, uid)["state"] == told
    tokens.done(uid, "transfer_ownership", BOB)
    (held,) = balances(tokens)
    assert (held["balance"], held["owned"]) == ("940", False)


def test_the_workspaces_lists_have_the_books_names_and_each_address_once(tokens, uid):
    tokens.fund()
    waiting = ok(tokens.create(ticker="SILVER"))["contract_uid"]
    tokens.done(uid, "add_to_whitelist", BOB)
    with tokens.desk.store.write() as db:
        entry = {"workspace_id": 1, "created_by": 1, "created_at": tokens.desk.world.clock()}
        db.add(AddressBookEntryRow(name="Bob", name_key="bob", address=BOB, **entry))
        db.add(AddressBookEntryRow(name="Nobody", name_key="nobody", address=open_address(9), **entry))
    lists = read(tokens, "get-workspace-whitelist")
    first, second = lists["contracts"]
    assert (first["contract_uid"], first["vault_name"], first["error"]) == (uid, "Treasury", None)
    assert first["addresses"] == [{"address": tokens.address, "name": ""}, {"address": BOB, "name": "Bob"}]
    assert (second["contract_uid"], second["addresses"]) == (waiting, [])
    assert "not confirmed" in second["error"]
    assert {each["address"]: each["contract_uids"] for each in lists["aggregate"]} == {
        tokens.address: [uid],
        BOB: [uid],
    }
    assert lists["vault_errors"] == []


def test_p15_a_stalled_call_is_sent_again_as_it_was_signed_and_once(tokens, uid):
    """Signed while no node can be reached."""
    made, desk = ok(tokens.call(uid, "pause")), tokens.desk
    backends = desk.world.platform.background.backends
    away = dict(backends)
    backends.clear()
    desk.sign_off(made["psbt_id"])
    desk.outbox.run_due()
    backends.update(away)
    assert calls(tokens)[-1]["Status"] == "STALLED"
    before = desk.proposal(made["psbt_id"])["psbt_base64"]
    body = {"call_uid": made["call_uid"], "workspace_id": 1}
    again = "/api/v1/contract-calls/resubmit"
    for _ in range(2):
        answer = ok(desk.admin.post(again, body))
        assert answer["txid"] == desk.proposal(made["psbt_id"])["txid_expected"]
    with desk.store.read() as db:
        mine = JobRow.kind == BROADCAST, JobRow.subject == made["psbt_id"], JobRow.done_at.is_(None)
        (job,) = db.scalars(select(JobRow).where(*mine))
        assert job.run_at <= desk.world.clock()
    desk.settle()
    assert calls(tokens)[-1]["Status"] == "BROADCASTING"
    assert desk.proposal(made["psbt_id"])["psbt_base64"] == before
    tokens.mine()
    refused(desk.admin.post(again, body), 409, "CALL_NOT_STALLED")
    assert calls(tokens)[-1]["Status"] == "CONFIRMED"
    assert desk.audited().count("CALL_RESUBMITTED") == 2


def test_the_proposals_record_says_what_its_own_bytes_do(tokens, uid):
    made = ok(tokens.call(uid, "transfer", BOB, 125))
    record, token = tokens.desk.proposal(made["psbt_id"]), contract(tokens, uid)
    assert (record["contract_uid"], record["call_uid"]) == (uid, made["call_uid"])
    assert record["contract_ids"] == [token["contract_id"]]
    decoded = record["decoded_call"]
    assert (decoded["function"], decoded["amount_raw"], decoded["amount"]) == ("transfer", "125", "1.25")
    assert (decoded["ticker"], decoded["address"]) == ("GOLD", BOB)
    assert decoded["words"] == f"Send 1.25 GOLD tokens to {BOB}."
    assert record["op_return"] == f"0x{decoded['data_hex']}"
    assert (decoded["whitelist_count"], decoded["whitelist_hash"]) == (None, None)
    deployed = tokens.desk.proposal(token["deploy_psbt_id"])
    assert (deployed["contract_uid"], deployed["call_uid"]) == (uid, None)
    assert deployed["decoded_call"]["total_supply"] == "9.00"
    listed = (deployed["decoded_call"]["whitelist_count"], deployed["decoded_call"]["whitelist_hash"])
    assert listed == (0, sha256(b"[]").hexdigest())
    tokens.desk.deposit(100_000)
    send = ok(tokens.desk.propose(20_000))["psbt_id"]
    assert tokens.desk.proposal(send)["decoded_call"] is None


def listed(tokens: TokenDesk, **query: object) -> list[dict]:
    """Page by page."""
    where = {"workspace_id": 1, "vault_id": tokens.desk.vault["id"], "limit": 2, **query}
    found, cursor = [], {}
    while True:
        page = ok(tokens.desk.admin.get("/api/v1/token-history", **where, **cursor))
        found += page["movements"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_each_movement_with_the_holding_after_it(tokens: TokenDesk, uid: int) -> None:
    tokens.done(uid, "mint", tokens.address, 50)
    tokens.done(uid, "transfer", BOB, 125)
    tokens.done(uid, "burn", tokens.address, 10)
    found = listed(tokens, order="oldest")
    assert [(one["function"], one["amount"], one["holding"]) for one in found] == [
        ("init", "9.00", "9.00"),
        ("mint", "0.50", "9.50"),
        ("transfer", "-1.25", "8.25"),
        ("burn", "-0.10", "8.15"),
    ]
    (balance,) = ok(
        tokens.desk.admin.get("/api/v1/get-tokens", workspace_id=1, vault_id=tokens.desk.vault["id"])
    )
    assert found[-1]["holding_raw"] == balance["balance"]
    assert listed(tokens) == found[::-1]
    assert listed(tokens, contract_uid=uid) == found[::-1]
    query = {"workspace_id": 1, "vault_id": tokens.desk.vault["id"], "contract_uid": uid + 1}
    refused(tokens.desk.admin.get("/api/v1/token-history", **query), 404, "NOT_FOUND")
    tokens.reorganise(1, 2)
    assert listed(tokens, order="oldest")[:3] == [
        one | {"confirmations": one["confirmations"] + 1} for one in found[:3]
    ]
