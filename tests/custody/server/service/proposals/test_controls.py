"""A vault's controls: frozen (P53), bound to the address book (P54), approved by others than makers (P55)."""

import pytest

from custody.schemas.users import PermissionName
from custody.server.store.models import Proposal
from tests.support.custody import CAFE, SHOP, ok, refused
from tests.support.profiles import forward, grant, pay_profile
from tests.support.replacing import bump, cancel, made, status, take_back
from tests.support.staff import change_role
from tests.support.token_desk import TokenDesk

SIGNER_ROLE = 2
FREE = {"only_address_book": False, "maker_may_approve": True}


@pytest.fixture
def psbt_id(desk):
    desk.deposit(500_000, 400_000)
    return made(desk.propose(150_000, fee_rate="2"))


def tell(desk, person, path, **body):
    place = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return person.post(f"/api/v1/{path}", place | body)


def freeze(desk, name="carol", **body):
    return tell(desk, desk.signers[name], "freeze-vault", **body)


def unfreeze(desk, name):
    return tell(desk, desk.signers[name], "unfreeze-vault")


def bind(desk, **changes):
    return ok(tell(desk, desk.admin, "update-vault-controls", **FREE | changes))


def enter(desk, address, name):
    body = {"workspace_id": desk.workspace_id, "name": name, "address": address}
    return ok(desk.admin.post("/api/v1/add-whitelist-address", body))


def audited(desk, count=1):
    return desk.world.audit_actions(f"workspace:{desk.workspace_id}")[-count:]


class TestFrozen:
    def test_p53_nothing_is_proposed_or_approved(self, desk, psbt_id):
        signed = desk.signed("alice", psbt_id)
        shown = ok(freeze(desk, reason="a phone was stolen"))
        assert (shown["is_frozen"], shown["frozen_by"]) == (True, str(desk.user_ids["carol"]))
        assert desk.wallets()[0]["is_frozen"]
        for answer in (
            desk.propose(10_000),
            bump(desk, psbt_id, fee_rate="9"),
            take_back(desk, psbt_id),
            desk.submit("alice", psbt_id, signed),
        ):
            told = refused(answer, 409, "VAULT_FROZEN")["detail"]
            # signerd shows it to a signer.
            assert "`custody vault unfreeze`" in told
            assert "POST" not in told
        (row,) = desk.rows(Proposal)
        assert (row.status, row.final_tx) == ("PENDING", None)
        ok(desk.decline("bob", psbt_id))
        ok(cancel(desk, psbt_id))

    def test_p53_what_met_its_threshold_waits_and_is_sent_when_two_have_unfrozen_it(self, desk, psbt_id):
        desk.sign_off(psbt_id)
        assert ok(freeze(desk))["waiting_psbt_ids"] == [psbt_id]
        desk.settle()
        record = desk.proposal(psbt_id)
        assert (record["status"], record["failure_code"]) == ("STALLED", "vault-frozen")
        assert desk.chain.transaction(record["txid_expected"]) is None
        desk.world.clock.advance(minutes=9)
        desk.settle()
        desk.mine()
        assert status(desk, psbt_id) == ["STALLED"]
        ok(unfreeze(desk, "alice"))
        assert ok(unfreeze(desk, "bob"))["is_frozen"] is False
        desk.settle()
        assert status(desk, psbt_id) == ["BROADCASTING"]
        assert desk.proposal(psbt_id)["failure_code"] is None
        assert ok(freeze(desk))["on_network_psbt_ids"] == [psbt_id]
        desk.mine()
        assert status(desk, psbt_id) == ["CONFIRMED"], "what is on the network goes on"

    def test_p53_one_person_cannot_unfreeze(self, desk):
        ok(freeze(desk, "alice"))
        for _ in range(2):
            shown = ok(unfreeze(desk, "alice"))
            assert shown["unfreeze_asked_by"] == str(desk.user_ids["alice"])
        assert audited(desk, 2) == ["VAULT_FROZEN", "VAULT_UNFREEZE_ASKED"]
        refused(tell(desk, desk.admin, "unfreeze-vault", vault_id="another"), 404, "NOT_FOUND")
        assert ok(freeze(desk, "bob"))["unfreeze_asked_by"] is None, "a second freeze takes the word back"
        assert audited(desk) == ["VAULT_UNFREEZE_TAKEN_BACK"], "and webhooks are told of one freeze"
        assert ok(unfreeze(desk, "carol"))["is_frozen"]
        assert not ok(unfreeze(desk, "bob"))["is_frozen"]
        assert audited(desk) == ["VAULT_UNFROZEN"]
        refused(unfreeze(desk, "bob"), 409, "STATE_CONFLICT")

    def test_p53_the_first_confirmation_counts_for_a_day_and_while_its_member_still_may(self, desk):
        ok(freeze(desk))
        ok(unfreeze(desk, "alice"))
        desk.later(hours=24)
        assert ok(unfreeze(desk, "bob"))["unfreeze_asked_by"] == str(desk.user_ids["bob"])
        reader = {"workspace_id": 1, "name": "Reader", "transaction_limit": "0", "cycle_period": "M"}
        made_role = ok(desk.admin.post("/api/v1/create-role", reader | {"cycle_day": 1}))
        ok(change_role(desk.admin, desk.user_ids["bob"], made_role["RoleId"], force=True))
        assert ok(unfreeze(desk, "carol"))["is_frozen"]

    def test_a_members_own_money_may_still_come_in_and_no_token_is_made(self, desk):
        grant(desk, "Signer", "PAYMENT_INIT")
        pay_profile(desk, "alice", 100_000)
        tokens = TokenDesk(desk)
        tokens.fund(100_000, 100_000)
        ok(freeze(desk))
        ok(forward(desk, "alice", 20_000))
        refused(tokens.create(), 409, "VAULT_FROZEN")


class TestAddressBook:
    def test_p54_a_send_elsewhere_is_refused_by_name(self, desk):
        desk.deposit(500_000, 400_000)
        bind(desk, only_address_book=True)
        entry = enter(desk, SHOP, "Shop")
        assert entry["created_by"] == "1"
        problem = refused(desk.propose(10_000, 20_000), 403, "NOT_IN_ADDRESS_BOOK")
        assert CAFE in problem["detail"]
        assert SHOP not in problem["detail"]
        assert audited(desk) == ["NOT_IN_ADDRESS_BOOK"]
        refused(desk.sweep(CAFE), 403, "NOT_IN_ADDRESS_BOOK")
        ok(desk.propose(10_000))
        ok(desk.propose(10_000, recipients=[desk.wallets()[0]["receive_address"]]))

    def test_p54_an_entry_that_is_taken_out_stops_what_waits_for_approvals(self, desk, psbt_id):
        entry = enter(desk, SHOP, "Shop")
        bind(desk, only_address_book=True)
        desk.approve("alice", psbt_id)
        body = {"workspace_id": desk.workspace_id, "uid": entry["uid"]}
        ok(desk.admin.post("/api/v1/remove-whitelist-address", body))
        refused(desk.submit("bob", psbt_id, desk.signed("bob", psbt_id)), 403, "NOT_IN_ADDRESS_BOOK")
        refused(bump(desk, psbt_id, fee_rate="9"), 403, "NOT_IN_ADDRESS_BOOK")
        enter(desk, SHOP, "Shop")
        assert desk.approve("bob", psbt_id)["status"] == "SIGNED"

    def test_p54_a_token_goes_nowhere_else_either(self, desk):
        tokens = TokenDesk(desk)
        tokens.fund(100_000, 100_000)
        uid = tokens.started()
        bind(desk, only_address_book=True)
        for function, args in (("transfer", (SHOP, 1)), ("mint", (SHOP, 1)), ("transfer_ownership", (SHOP,))):
            problem = refused(tokens.call(uid, function, *args), 403, "NOT_IN_ADDRESS_BOOK")
            assert SHOP in problem["detail"]
        enter(desk, SHOP, "Shop")
        ok(tokens.call(uid, "transfer", SHOP, 1))


class TestMakers:
    def test_p55_a_maker_approves_neither_their_proposal_nor_a_version_of_it(self, desk):
        """Alice proposes; the administrator bumps it; Alice approves neither."""
        desk.deposit(500_000)
        bind(desk, maker_may_approve=False)
        grant(desk, "Signer", PermissionName.MANAGE_WORKSPACE.value)
        limit = {"new_transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
        role = {"role_id": SIGNER_ROLE, "workspace_id": desk.workspace_id}
        ok(desk.admin.post("/api/v1/update-role-policies", role | limit))
        body = {"wallet_id": desk.vault["id"], "workspace_id": 1, "tx_type": "send", "fee_rate": "2"}
        first = made(
            desk.signers["alice"].post(
                "/api/v1/create-psbt", body | {"recipients": [SHOP], "amounts_sats": [10_000]}
            )
        )
        refused(desk.submit("alice", first, desk.signed("alice", first)), 403, "NOT_A_SIGNER")
        second = made(bump(desk, first, fee_rate="9"))
        refused(desk.submit("alice", second, desk.signed("alice", second)), 403, "NOT_A_SIGNER")
        desk.approve("bob", second)
        assert desk.approve("carol", second)["status"] == "SIGNED"
