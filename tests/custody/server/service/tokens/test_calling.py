"""Calling a token: what is asked is checked, judged behind what waits, built, and done on the chain."""

import json

import pytest
from sqlalchemy import select

from custody.server.service.tokens.waiting import simulation_of
from custody.server.store.models import Contract, ContractCall, TokenBlock, TokenTransaction
from multisig import RECEIVE, Psbt
from multisig.tokens import Function
from tests.support.custody import ok, refused
from tests.support.profiles import grant
from tests.support.token_desk import BOB, BOB_SCRIPT, EVE

MAINNET = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"


def own_script(tokens):
    return tokens.desk.policy.script_pubkey(RECEIVE, 0)


def fault(problem):
    (found,) = problem["errors"]
    return found["pointer"], found["code"]


def several_coins(tokens, count=3):
    tokens.fund(*[50_000] * count)


class TestTheWholeWay:
    def test_every_function_from_init_to_a_change_of_owner(self, tokens):
        uid = tokens.deployed()
        assert tokens.done(uid, "init")["tx_type"] == "call"
        own = own_script(tokens)
        assert tokens.balance(own) == 900
        tokens.done(uid, "transfer", BOB, 40)
        assert (tokens.balance(own), tokens.balance(BOB_SCRIPT)) == (860, 40)
        tokens.done(uid, "mint", tokens.address, 100)
        tokens.done(uid, "burn", tokens.address, 60)
        tokens.done(uid, "pause")
        tokens.done(uid, "unpause")
        tokens.done(uid, "enable_whitelist")
        tokens.done(uid, "add_to_whitelist", BOB)
        tokens.done(uid, "transfer", BOB, 1)
        tokens.done(uid, "remove_from_whitelist", BOB)
        tokens.done(uid, "disable_whitelist")
        tokens.done(uid, "transfer_ownership", BOB)
        assert tokens.balance(own) == 899
        tokens.check()
        assert {row.failure for row in tokens.desk.rows(TokenTransaction)} == {None}
        called = {row.function_name for row in tokens.desk.rows(ContractCall)}
        assert called == {function.wire_name for function in Function}
        refused(tokens.call(uid, "pause"), 422, "VALIDATION")

    def test_between_two_calls_the_change_of_the_first_is_waited_for(self, tokens, uid):
        first = ok(tokens.call(uid, "transfer", BOB, 40))["psbt_id"]
        refused(tokens.call(uid, "transfer", BOB, 50), 409, "LOCKED_FUNDS")
        tokens.finish(first, blocks=0)
        tokens.look()
        problem = refused(tokens.call(uid, "transfer", BOB, 50), 422, "TOKEN_COIN_MISSING")
        assert fault(problem) == ("/wallet_id", "token-coin-missing")
        assert first in problem["detail"]
        tokens.mine()
        ok(tokens.call(uid, "transfer", BOB, 50))

    def test_the_record_holds_what_was_asked(self, tokens, uid):
        made = ok(tokens.call(uid, "transfer", BOB, 40, recipients=[BOB], priority="high"))
        (call,) = tokens.desk.rows(ContractCall, ContractCall.uid == made["call_uid"])
        assert call.args == [{"type": "str", "value": BOB}, {"type": "int", "value": 40}]
        assert (call.amount, call.address_script, call.family_id) == (40, BOB_SCRIPT, made["psbt_id"])
        record = tokens.desk.proposal(made["psbt_id"])
        assert (record["recipients"], record["amounts_sats"]) == ([BOB], [])
        psbt = Psbt.parse(made["psbt_base64"])
        assert psbt.inputs[0].witness_utxo.script_pubkey == own_script(tokens)
        assert len(psbt.outputs) == 2, "the data, and what returns to the address"

    def test_p34_the_former_owner_is_refused(self, tokens, uid):
        tokens.done(uid, "transfer_ownership", BOB)
        problem = refused(tokens.call(uid, "mint", BOB, 1), 422, "VALIDATION")
        assert fault(problem) == ("/wallet_id", "not-the-owner")
        ok(tokens.call(uid, "transfer", BOB, 1))

    def test_p34_while_it_waits_too(self, tokens, uid):
        several_coins(tokens)
        ok(tokens.call(uid, "transfer_ownership", BOB))
        problem = refused(tokens.call(uid, "pause"), 422, "VALIDATION")
        assert "one call" in problem["detail"]


class TestArguments:
    def test_number_order_and_types(self, tokens, uid):
        for function, args, pointer in (
            ("transfer", [BOB], "/args"),
            ("transfer", [40, BOB], "/args"),
            ("transfer", [BOB, 40, 1], "/args"),
            ("transfer", [BOB, "40"], "/args"),
            ("pause", [BOB], "/args"),
            ("init", [1], "/args"),
            ("add_to_whitelist", [], "/args"),
            ("transfer", [BOB, 0], "/args/1/value"),
            ("transfer", ["nonsense", 1], "/args/0/value"),
            ("transfer", ["a" * 91, 1], "/args/0/value"),
        ):
            problem = refused(tokens.call(uid, function, *args), 422, "VALIDATION")
            assert pointer in {each["pointer"] for each in problem["errors"]}
        assert fault(refused(tokens.call(uid, "burn", BOB, 1), 422, "VALIDATION")) == (
            "/args/0/value",
            "not-the-owners-address",
        )
        refused(tokens.call(uid, "pause", wallet_id="none"), 404, "NOT_FOUND")
        refused(tokens.call(77, "pause"), 404, "NOT_FOUND")

    def test_p21_p31_an_amount_is_an_exact_integer(self, tokens):
        asked = {"contract_uid": 1, "wallet_id": tokens.desk.vault["id"], "workspace_id": 1}
        args = [{"type": "str", "value": BOB}, {"type": "int", "value": "AMOUNT"}]
        body = json.dumps({**asked, "function_name": "transfer", "args": args})
        user = tokens.desk.admin
        headers = {**user.headers, "Content-Type": "application/json"}
        for amount in ("true", "1.5", "1e-2", "-1", str(2**63), '"5"', "null"):
            content = body.replace('"AMOUNT"', amount)
            answer = user.http.post("/api/v1/call-contract", content=content, headers=headers)
            problem = refused(answer, 422, "VALIDATION")
            assert [each["pointer"] for each in problem["errors"]] == ["/args/1/value"]

    def test_a_fault_is_shown_where_it_was_sent(self, tokens):
        for arg, pointer in (
            ({"type": "int", "value": 1, "int": 2}, "/args/0/int"),
            ({"type": "str"}, "/args/0/value"),
            ({"type": "str", "value": "\x00"}, "/args/0"),
            ({"type": "bytes", "value": "00"}, "/args/0"),
        ):
            problem = refused(tokens.call(1, "pause", args=[arg]), 422, "VALIDATION")
            assert [each["pointer"] for each in problem["errors"]] == [pointer]

    def test_p28_an_address_of_another_network(self, tokens, uid):
        refused(tokens.call(uid, "transfer", MAINNET, 1), 422, "WRONG_NETWORK_ADDRESS")
        refused(tokens.call(uid, "transfer", BOB, 1, recipients=[MAINNET]), 422, "WRONG_NETWORK_ADDRESS")


class TestInit:
    def test_p33_not_before_a_confirmation(self, tokens):
        several_coins(tokens)
        made = ok(tokens.create())
        refused(tokens.call(made["contract_uid"], "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")
        tokens.finish(made["psbt_id"], blocks=0)
        refused(tokens.call(made["contract_uid"], "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")
        tokens.mine()
        ok(tokens.call(made["contract_uid"], "init"))

    def test_p33_not_twice(self, tokens):
        several_coins(tokens)
        uid = tokens.deployed()
        assert fault(refused(tokens.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT"))[1] == "not-started"
        first = ok(tokens.call(uid, "init"))
        problem = refused(tokens.call(uid, "init"), 409, "STATE_CONFLICT")
        assert "one call" in problem["detail"]
        transfer = ok(tokens.call(uid, "transfer", BOB, 1))
        tokens.finish(first["psbt_id"])
        tokens.finish(transfer["psbt_id"])
        assert tokens.balance(BOB_SCRIPT) == 1, "behind an init that waits it might"
        assert fault(refused(tokens.call(uid, "init"), 409, "STATE_CONFLICT"))[1] == "already-started"

    def test_p33_not_after_the_deployment_was_reorganised_away(self, tokens):
        several_coins(tokens)
        made = ok(tokens.create())
        tokens.finish(made["psbt_id"])
        tokens.reorganise(1, 2)
        assert tokens.desk.proposal(made["psbt_id"])["status"] == "BROADCASTING"
        refused(tokens.call(made["contract_uid"], "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")
        tokens.mine()
        ok(tokens.call(made["contract_uid"], "init"))

    def test_p33_nor_where_only_the_index_has_not_seen_it_yet(self, tokens):
        made = ok(tokens.create())
        tokens.finish(made["psbt_id"], blocks=0)
        tokens.desk.mine()
        assert tokens.desk.proposal(made["psbt_id"])["status"] == "BROADCASTING"
        refused(tokens.call(made["contract_uid"], "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")

    def test_while_the_index_is_behind_the_chain(self, tokens, uid):
        """A block that it has not read may pause the token: the call would be mined and do nothing."""
        tokens.desk.mine(2)
        problem = refused(tokens.call(uid, "transfer", BOB, 1), 503, "BACKEND_UNAVAILABLE")
        assert "index of tokens is behind" in problem["detail"]
        assert "cannot be reached" not in problem["detail"]
        tokens.look()
        ok(tokens.call(uid, "transfer", BOB, 1))

    @pytest.mark.parametrize("longer", [0, 2])
    def test_while_the_index_is_on_a_branch_that_the_chain_has_left(self, tokens, uid, longer):
        """As high as the chain, or nearly: the balance is of blocks that are gone."""
        tokens.done(uid, "transfer", BOB, 900)
        tokens.desk.chain.mine(2)
        tokens.look()
        tokens.desk.reorganise(3, 4)
        # What the index read beyond the watcher's tip makes it no better.
        self.read_more(tokens, longer)
        problem = refused(tokens.call(uid, "transfer", EVE, 1), 503, "BACKEND_UNAVAILABLE")
        assert "another block" in problem["detail"]
        tokens.look()
        tokens.fund(50_000)
        # The transfer was mined again meanwhile.
        refused(tokens.call(uid, "transfer", EVE, 1), 422, "INSUFFICIENT_FUNDS")

    @staticmethod
    def read_more(tokens, blocks):
        with tokens.desk.world.platform.services.store.write() as db:
            last = db.scalars(select(TokenBlock).order_by(TokenBlock.height.desc()).limit(1)).one()
            values = {"chain": last.chain, "mined_at": last.mined_at, "state": last.state}
            for number in range(1, blocks + 1):
                height = last.height + number
                db.add(TokenBlock(height=height, block_hash=f"{number:064x}", **values))

    def test_an_index_that_is_ahead_of_the_watcher_is_not_behind(self, tokens, uid):
        tokens.desk.chain.mine(3)
        for indexer in tokens.desk.world.platform.background.indexers():
            indexer.look()
        ok(tokens.call(uid, "transfer", BOB, 1))

    def test_what_was_mined_on_a_branch_that_the_index_has_not_read_still_waits(self, tokens, uid):
        sent = tokens.finish(ok(tokens.call(uid, "transfer", BOB, 900))["psbt_id"], blocks=0)
        payment = tokens.desk.chain.transaction(sent["txid"]).transaction
        tokens.desk.chain.mine(1, empty=True)
        tokens.look()
        tokens.desk.reorganise(1, 2, [payment])
        assert tokens.desk.proposal(sent["psbt_id"])["status"] == "BROADCASTING"
        store = tokens.desk.world.platform.services.store
        with store.read() as db:
            (waiting,) = simulation_of(db, db.get_one(Contract, uid), tokens.desk.workspace_id).waiting
        assert waiting.txid == payment.txid
        tokens.look()
        with store.read() as db:
            assert simulation_of(db, db.get_one(Contract, uid), tokens.desk.workspace_id).waiting == ()


class TestRules:
    def test_p31_minting_beyond_the_maximum(self, tokens, uid):
        several_coins(tokens)
        problem = refused(tokens.call(uid, "mint", BOB, 101), 422, "VALIDATION")
        assert fault(problem) == ("/args/1/value", "above-maximum")
        refused(tokens.call(uid, "mint", BOB, 2**63 - 1), 422, "VALIDATION")
        ok(tokens.call(uid, "mint", BOB, 60))
        assert "one call" in refused(tokens.call(uid, "mint", BOB, 60), 422, "VALIDATION")["detail"]
        ok(tokens.call(uid, "mint", BOB, 40))

    def test_p32_while_paused(self, tokens, uid):
        tokens.done(uid, "pause")
        assert fault(refused(tokens.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT"))[1] == "paused"
        refused(tokens.call(uid, "pause"), 409, "ALREADY_PAUSED")
        tokens.done(uid, "unpause")
        refused(tokens.call(uid, "unpause"), 409, "NOT_PAUSED")

    def test_p32_to_an_unlisted_address(self, tokens):
        uid = tokens.started(whitelist_enabled=True)
        problem = refused(tokens.call(uid, "transfer", BOB, 1), 422, "VALIDATION")
        assert fault(problem) == ("/args/0/value", "not-listed")
        tokens.done(uid, "add_to_whitelist", BOB)
        tokens.done(uid, "transfer", BOB, 1)

    def test_a_balance_is_reserved_by_what_waits(self, tokens, uid):
        several_coins(tokens)
        first = ok(tokens.call(uid, "transfer", BOB, 500))["psbt_id"]
        problem = refused(tokens.call(uid, "transfer", EVE, 500), 409, "LOCKED_FUNDS")
        assert fault(problem) == ("/args/1/value", "insufficient-balance")
        refused(tokens.call(uid, "transfer", EVE, 901), 422, "INSUFFICIENT_FUNDS")
        ok(tokens.call(uid, "transfer", EVE, 400))
        tokens.desk.reject(first)
        ok(tokens.call(uid, "transfer", EVE, 500))


def test_the_whitelists_own_paths(tokens, uid):
    body = {"contract_uid": uid, "wallet_id": tokens.desk.vault["id"], "workspace_id": 1, "address": BOB}
    for path, code in (
        ("add-to-contract-whitelist", "already-listed"),
        ("remove-from-contract-whitelist", "not-listed"),
    ):
        made = ok(tokens.desk.admin.post(f"/api/v1/{path}", body))
        assert tokens.finish(made["psbt_id"])["status"] == "CONFIRMED"
        problem = refused(tokens.desk.admin.post(f"/api/v1/{path}", body), 422, "VALIDATION")
        assert fault(problem) == ("/address", code)


class TestLimits:
    def used(self, tokens):
        return ok(tokens.desk.admin.get("/api/v1/get-my-limits", workspace_id=1))["Used"]

    def test_a_transfer_fits_the_vault_in_whole_tokens(self, tokens, uid):
        tokens.limit("4.00999999")
        problem = refused(tokens.call(uid, "transfer", BOB, 401), 403, "VAULT_LIMIT_EXCEEDED")
        figures = problem["figures"]
        assert (figures["limit"], figures["requested"]) == ("4.00", "4.01")
        ok(tokens.call(uid, "transfer", BOB, 400))

    @pytest.mark.parametrize("function", ["mint", "burn"])
    def test_minting_and_burning_fit_the_vault_and_count_for_no_role(self, tokens, uid, function):
        several_coins(tokens)
        tokens.limit("0.50")
        tokens.limit_role("0.00001")
        before = self.used(tokens)
        refused(tokens.call(uid, function, tokens.address, 51), 403, "VAULT_LIMIT_EXCEEDED")
        ok(tokens.call(uid, function, tokens.address, 50))
        assert self.used(tokens) == before, "its fee neither"
        refused(tokens.call(uid, "pause"), 403, "ROLE_LIMIT_EXCEEDED")

    def test_p18_transfers_count_together_for_the_role(self, tokens, uid):
        several_coins(tokens)
        tokens.limit_role("5")
        first = ok(tokens.call(uid, "transfer", BOB, 300))["psbt_id"]
        problem = refused(tokens.call(uid, "transfer", BOB, 201), 403, "ROLE_LIMIT_EXCEEDED")
        assert (problem["figures"]["limit"], problem["figures"]["used"]) == ("5.00", "3.00")
        ok(tokens.call(uid, "transfer", BOB, 200))
        tokens.desk.reject(first)
        ok(tokens.call(uid, "transfer", BOB, 300))


class TestPermissions:
    def test_by_the_function(self, tokens, uid):
        alice = tokens.desk.signers["alice"]
        refused(tokens.call(uid, "transfer", BOB, 1, user=alice), 403, "PERMISSION_DENIED")
        grant(tokens.desk, "Signer", "PAYMENT_INIT")
        refused(tokens.call(uid, "pause", user=alice), 403, "PERMISSION_DENIED")
        refused(tokens.call(uid, "transfer", BOB, 1, user=alice), 403, "ROLE_LIMIT_EXCEEDED")
