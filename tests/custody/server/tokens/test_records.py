"""Tokens that another workspace made: only a workspace that was paid some, or was handed one, can prove, move
and call it (P24).
"""

import pytest

from custody.schemas.asset_tokens import Contract
from signerd.account.wire import published_of
from signerd.core.tokens import prove_token
from tests.support.custody import Desk, neighbour_of, ok, refused
from tests.support.prepared import Story
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


def test_a_holder_proves_the_token_from_bytes_and_moves_them_once(maker, neighbour):
    """As a signer's machine does, before it shows the call."""
    uid = paid(maker, neighbour)
    problem = refused(neighbour.call(uid, "mint", BOB, 1), 422, "VALIDATION")
    assert problem["errors"][0]["code"] == "not-the-owner", "it owns nothing of it"
    sent = ok(neighbour.call(uid, "transfer", BOB, 15))
    refused(neighbour.call(uid, "transfer", EVE, 30), 409, "LOCKED_FUNDS")

    proposal = neighbour.desk.proposal(sent["psbt_id"])
    record = ok(asked(neighbour, "contract", contract_uid=proposal["contract_uid"]))
    (contract_id,) = proposal["contract_ids"]
    token = prove_token(contract_id, published_of(Contract.model_validate(record)))
    assert (token.ticker, token.decimals, token.name) == ("GOLD", 2, "Gold of the House")

    neighbour.finish(sent["psbt_id"])
    (held,) = ok(asked(neighbour, "get-tokens", vault_id=neighbour.desk.vault["id"]))
    assert (held["contract_uid"], held["balance"], held["owned"]) == (uid, "25", False)
    assert maker.balance(BOB_SCRIPT) == 15
    maker.check()


def test_it_is_bound_by_its_own_workspaces_rules_and_finds_no_token_once_all_are_gone(maker, neighbour):
    """Its calls it finds with its vault."""
    uid, desk = paid(maker, neighbour), neighbour.desk
    neighbour.desk.limit("0.20")
    refused(neighbour.call(uid, "transfer", BOB, 21), 403, "VAULT_LIMIT_EXCEEDED")
    sent = ok(neighbour.call(uid, "transfer", maker.address, 20))
    (asset,) = desk.wallets()[0]["assets"]
    assert (asset["contract_uid"], asset["Used"]) == (uid, "0.20"), "nothing of what the maker moved"
    neighbour.finish(sent["psbt_id"])
    neighbour.done(uid, "transfer", maker.address, 20)
    finds_nothing(neighbour, uid)
    calls = ok(asked(neighbour, "contract-calls", vault_id=desk.vault["id"]))
    assert [(call["ContractUID"], call["Status"]) for call in calls] == [(uid, "CONFIRMED")] * 2


def test_a_new_owner_calls_it_and_its_maker_does_no_more(maker, neighbour):
    """The record names the vault that owns it before one that only holds some."""
    uid, older = paid(maker, neighbour), neighbour.desk.vault["id"]
    neighbour.desk.vault = owner = ok(neighbour.desk.create_vault("Owner"))
    neighbour.fund(50_000, 50_000)
    assert ok(asked(neighbour, "contract", contract_uid=uid))["vault_id"] == older
    maker.done(uid, "transfer_ownership", owner["address"])
    assert ok(asked(neighbour, "contract", contract_uid=uid))["vault_id"] == owner["id"]
    neighbour.done(uid, "mint", BOB, 50)
    neighbour.done(uid, "enable_whitelist")
    refused(maker.call(uid, "disable_whitelist"), 422, "VALIDATION")
    ok(asked(maker, "contract", contract_uid=uid))
    maker.check()


class TestP24:
    def test_a_workspace_that_neither_holds_nor_owns_finds_none_of_it(self, maker, neighbour):
        """Nor once a reorganisation took it back."""
        uid = maker.started()
        maker.done(uid, "transfer", neighbour.desk.policy.address(1, 0), 1)
        finds_nothing(neighbour, uid)
        maker.finish(ok(maker.call(uid, "transfer", neighbour.address, 1))["psbt_id"], blocks=0)
        finds_nothing(neighbour, uid)
        maker.mine()
        ok(asked(neighbour, "contract", contract_uid=uid))
        maker.reorganise(1, 2)
        finds_nothing(neighbour, uid)

    def test_the_record_has_what_the_chain_and_the_bytecode_say_and_no_more(self, maker, neighbour):
        """Nothing that is read of it names the maker's vault, proposals, keys or people; nor does its maker
        see what others do with it.
        """
        uid, desk = paid(maker, neighbour), maker.desk
        own = ok(asked(maker, "contract", contract_uid=uid))
        assert own["vault_id"]
        assert own["deploy_psbt_id"]
        assert len(own["signers"]) == 3
        vault_id = neighbour.desk.vault["id"]
        private = {"vault_id": vault_id, "deploy_psbt_id": None, "signers": []}
        private["state"] = own["state"] | {"owner_address": None}
        assert ok(asked(neighbour, "contract", contract_uid=uid)) == own | private
        # A field that is new is looked at here before it is shown to other tenants.
        assert set(own) - set(private) == {
            "contract_uid", "contract_id", "symbol", "icon", "decimals", "total_supply", "max_supply",
            "status", "bytecode_hash", "network", "whitelist_enabled", "name", "bytecode", "deployment_hex",
        }  # fmt: skip

        ok(maker.call(uid, "pause", recipients=[EVE]))
        mine = ok(neighbour.call(uid, "transfer", BOB, 1))
        calls = ok(asked(maker, "contract-calls", contract_uid=uid))
        secrets = {desk.vault["id"], "Treasury", "example.org", desk.vault["address"], EVE}
        secrets |= {call["PsbtID"] for call in calls} | {call["TxID"] for call in calls if call["TxID"]}
        secrets |= {signer["key_id"] for signer in own["signers"]}
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
            assert [each for each in secrets if each in answer.text] == [], path
        (call,) = ok(asked(neighbour, "contract-calls", contract_uid=uid))
        assert call["UID"] == mine["call_uid"]
        assert mine["call_uid"] not in [call["UID"] for call in calls]
        body = {"call_uid": mine["call_uid"], "workspace_id": desk.workspace_id}
        refused(desk.admin.post("/api/v1/contract-calls/resubmit", body), 404, "NOT_FOUND")

    def test_what_others_have_not_sent_tells_nothing_stops_nothing_and_cannot_be_spent(
        self, maker, neighbour
    ):
        uid = paid(maker, neighbour)
        sent = ok(maker.call(uid, "transfer", neighbour.address, 60))
        refused(neighbour.call(uid, "transfer", BOB, 41), 422, "INSUFFICIENT_FUNDS")
        maker.finish(sent["psbt_id"], blocks=0)
        neighbour.desk.reject(ok(neighbour.call(uid, "transfer", BOB, 100))["psbt_id"])
        maker.mine()

        paused = ok(maker.call(uid, "pause"))
        ok(neighbour.call(uid, "transfer", BOB, 1))
        maker.finish(paused["psbt_id"], blocks=0)
        problem = refused(neighbour.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT")
        assert problem["errors"][0]["code"] == "paused"
        maker.mine()
        refused(neighbour.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT")
