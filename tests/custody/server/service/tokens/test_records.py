"""Tokens that another workspace made: only a workspace that was paid some, or was handed one, can prove, move
and call it (P24).
"""

import pytest

from custody.schemas.asset_tokens import Contract
from signerd.account.wire import published_of
from signerd.core.tokens import prove_token
from tests.support.custody import Desk, ok, refused
from tests.support.neighbours import neighbour_of
from tests.support.prepared import Story
from tests.support.profiles import grant
from tests.support.token_desk import BOB, BOB_SCRIPT, EVE, TokenDesk


@pytest.fixture
def beginning() -> Story:
    return coins_of_a_maker


def coins_of_a_maker(desk: Desk) -> None:
    TokenDesk(desk).fund(200_000)
    TokenDesk(desk).fund(50_000, 50_000)


@pytest.fixture
def maker(tokens) -> TokenDesk:
    return tokens


@pytest.fixture
def neighbour(maker) -> TokenDesk:
    """Of another organisation, with coins at its address."""
    found = TokenDesk(neighbour_of(maker.desk))
    found.fund(50_000, 50_000, 50_000)
    return found


def asked(tokens, path, **query):
    desk = tokens.desk
    return desk.admin.get(f"/api/v1/{path}", workspace_id=desk.workspace_id, **query)


def finds_nothing(tokens, uid) -> None:
    for path in ("contract", "contract-calls"):
        refused(asked(tokens, path, contract_uid=uid), 404, "NOT_FOUND")
    refused(tokens.call(uid, "transfer", BOB, 1), 404, "NOT_FOUND")


def paid(maker, neighbour, amount=40) -> int:
    uid = maker.started()
    maker.done(uid, "transfer", neighbour.address, amount)
    return uid


class TestWhoeverHoldsSome:
    def test_moves_them_once(self, maker, neighbour):
        uid = paid(maker, neighbour)
        problem = refused(neighbour.call(uid, "mint", BOB, 1), 422, "VALIDATION")
        assert problem["errors"][0]["code"] == "not-the-owner", "it owns nothing of it"
        sent = ok(neighbour.call(uid, "transfer", BOB, 15))
        refused(neighbour.call(uid, "transfer", EVE, 30), 409, "LOCKED_FUNDS")
        neighbour.finish(sent["psbt_id"])
        (held,) = ok(asked(neighbour, "get-tokens", vault_id=neighbour.desk.vault["id"]))
        assert (held["contract_uid"], held["balance"], held["owned"]) == (uid, "25", False)
        assert maker.balance(BOB_SCRIPT) == 15
        maker.check()

    def test_proves_the_token_from_bytes(self, maker, neighbour):
        """As a signer's machine does, before it shows the call."""
        uid = paid(maker, neighbour)
        made = ok(neighbour.call(uid, "transfer", BOB, 1))
        proposal = neighbour.desk.proposal(made["psbt_id"])
        record = ok(asked(neighbour, "contract", contract_uid=proposal["contract_uid"]))
        (contract_id,) = proposal["contract_ids"]
        token = prove_token(contract_id, published_of(Contract.model_validate(record)))
        assert (token.ticker, token.decimals, token.name) == ("GOLD", 2, "Gold of the House")

    def test_is_bound_by_the_limits_and_the_rules_of_its_own_workspace(self, maker, neighbour):
        uid, desk = paid(maker, neighbour), neighbour.desk
        neighbour.limit("0.20")
        refused(neighbour.call(uid, "transfer", BOB, 21), 403, "VAULT_LIMIT_EXCEEDED")
        ok(neighbour.call(uid, "transfer", BOB, 20))
        (asset,) = desk.wallets()[0]["assets"]
        assert (asset["contract_uid"], asset["Used"]) == (uid, "0.20"), "nothing of what the maker moved"
        alice = desk.signers["alice"]
        refused(neighbour.call(uid, "transfer", BOB, 1, user=alice), 403, "PERMISSION_DENIED")
        grant(desk, "Signer", "PAYMENT_INIT")
        refused(neighbour.call(uid, "pause", user=alice), 403, "PERMISSION_DENIED")

    def test_finds_no_token_any_more_once_all_are_gone_and_its_calls_with_its_vault(self, maker, neighbour):
        uid = paid(maker, neighbour)
        neighbour.done(uid, "transfer", maker.address, 40)
        finds_nothing(neighbour, uid)
        (call,) = ok(asked(neighbour, "contract-calls", vault_id=neighbour.desk.vault["id"]))
        assert (call["ContractUID"], call["Status"]) == (uid, "CONFIRMED")

    def test_nor_once_a_reorganisation_took_them_back(self, maker, neighbour):
        uid = paid(maker, neighbour)
        ok(asked(neighbour, "contract", contract_uid=uid))
        maker.reorganise(1, 2)
        finds_nothing(neighbour, uid)
        maker.mine()
        ok(neighbour.call(uid, "transfer", BOB, 1))


def test_whoever_was_handed_one_calls_it_and_its_maker_does_no_more(maker, neighbour):
    uid = maker.started()
    maker.done(uid, "transfer_ownership", neighbour.address)
    assert ok(asked(neighbour, "contract", contract_uid=uid))["vault_id"] == neighbour.desk.vault["id"]
    neighbour.done(uid, "mint", BOB, 50)
    neighbour.done(uid, "enable_whitelist")
    refused(maker.call(uid, "disable_whitelist"), 422, "VALIDATION")
    ok(asked(maker, "contract", contract_uid=uid))
    maker.check()


def test_the_record_names_the_vault_that_owns_it_before_one_that_only_holds_some(maker, neighbour):
    uid, older = paid(maker, neighbour), neighbour.desk.vault["id"]
    owner = ok(neighbour.desk.create_vault("Owner"))
    assert ok(asked(neighbour, "contract", contract_uid=uid))["vault_id"] == older
    maker.done(uid, "transfer_ownership", owner["address"])
    assert ok(asked(neighbour, "contract", contract_uid=uid))["vault_id"] == owner["id"]


class TestP24:
    def test_whoever_neither_holds_nor_owns_finds_none_of_it(self, maker, neighbour):
        uid = maker.started()
        maker.done(uid, "transfer", neighbour.desk.policy.address(1, 0), 1)
        finds_nothing(neighbour, uid)
        maker.finish(ok(maker.call(uid, "transfer", neighbour.address, 1))["psbt_id"], blocks=0)
        finds_nothing(neighbour, uid)
        maker.mine()
        ok(asked(neighbour, "contract", contract_uid=uid))

    def test_the_record_has_what_the_chain_and_the_bytecode_say_and_no_more(self, maker, neighbour):
        uid = paid(maker, neighbour)
        own = ok(asked(maker, "contract", contract_uid=uid))
        assert own["vault_id"]
        assert own["deploy_psbt_id"]
        assert len(own["signers"]) == 3
        private = {"vault_id": neighbour.desk.vault["id"], "deploy_psbt_id": None, "signers": []}
        private["state"] = own["state"] | {"owner_address": None}
        assert ok(asked(neighbour, "contract", contract_uid=uid)) == own | private
        # A field that is new is looked at here before it is shown to other tenants.
        assert set(own) - set(private) == {
            "contract_uid", "contract_id", "symbol", "icon", "decimals", "total_supply", "max_supply",
            "status", "bytecode_hash", "network", "whitelist_enabled", "name", "bytecode", "deployment_hex",
        }  # fmt: skip

    def test_nothing_that_is_read_of_it_names_the_makers_vault_proposals_keys_or_people(
        self, maker, neighbour
    ):
        uid, desk = paid(maker, neighbour), maker.desk
        ok(maker.call(uid, "pause", recipients=[EVE]))
        mine = ok(neighbour.call(uid, "transfer", BOB, 1))
        calls = ok(asked(maker, "contract-calls", contract_uid=uid))
        private = {desk.vault["id"], "Treasury", "example.org", desk.vault["address"], EVE}
        private |= {call["PsbtID"] for call in calls} | {call["TxID"] for call in calls if call["TxID"]}
        private |= {signer["key_id"] for signer in ok(asked(maker, "contract", contract_uid=uid))["signers"]}
        vault_id = neighbour.desk.vault["id"]
        for path, query in (
            ("contract", {"contract_uid": uid}),
            ("contract-calls", {"contract_uid": uid}),
            ("contracts", {"vault_id": vault_id}),
            ("get-tokens", {"vault_id": vault_id}),
            ("get-workspace-whitelist", {}),
            ("psbt", {}),
            ("list-wallets", {}),
        ):
            answer = asked(neighbour, path, **query)
            assert answer.status_code == 200, (path, answer.text)
            assert [each for each in private if each in answer.text] == [], path
        (call,) = ok(asked(neighbour, "contract-calls", contract_uid=uid))
        assert call["UID"] == mine["call_uid"]

    def test_nor_does_its_maker_see_what_others_do_with_it(self, maker, neighbour):
        uid = paid(maker, neighbour)
        mine = ok(neighbour.call(uid, "transfer", BOB, 1))
        calls = ok(asked(maker, "contract-calls", contract_uid=uid))
        assert mine["call_uid"] not in [call["UID"] for call in calls]
        body = {"call_uid": mine["call_uid"], "workspace_id": maker.desk.workspace_id}
        refused(maker.desk.admin.post("/api/v1/contract-calls/resubmit", body), 404, "NOT_FOUND")

    def test_what_others_have_not_sent_tells_nothing_and_stops_nothing(self, maker, neighbour):
        uid = paid(maker, neighbour)
        paused = ok(maker.call(uid, "pause"))
        refused(maker.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT")
        ok(neighbour.call(uid, "transfer", BOB, 1))
        maker.finish(paused["psbt_id"], blocks=0)
        problem = refused(neighbour.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT")
        assert problem["errors"][0]["code"] == "paused"
        maker.mine()
        refused(neighbour.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT")

    def test_nor_can_what_others_have_not_sent_be_spent(self, maker, neighbour):
        uid = paid(maker, neighbour)
        sent = ok(maker.call(uid, "transfer", neighbour.address, 60))
        refused(neighbour.call(uid, "transfer", BOB, 41), 422, "INSUFFICIENT_FUNDS")
        maker.finish(sent["psbt_id"], blocks=0)
        ok(neighbour.call(uid, "transfer", BOB, 100))
