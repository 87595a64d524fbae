"""A vault's controls: frozen (P53), bound to the address book (P54), approved by others than makers (P55);
and whether enough signers are left (P105)."""

from itertools import combinations_with_replacement

import pytest

from custody.schemas.call import PermissionName
from custody.server.store.models import CoinLockRow
from tests.support.custody import CAFE, SHOP, SIGNERS, ok, refused
from tests.support.examples import drawn
from tests.support.profiles import grant
from tests.support.replacing import bump, cancel, made, status
from tests.support.staff import SIGNER_ROLE, add_role, change_role, set_states
from tests.support.token_desk import TokenDesk


@pytest.fixture
def psbt_id(desk):
    desk.deposit(500_000, 400_000)
    return made(desk.propose(150_000, fee_rate="2"))


class TestFrozen:
    def test_p53_nothing_is_approved_and_a_decline_or_a_cancel_is(self, desk, psbt_id):
        signed = desk.signed("alice", psbt_id)
        shown = desk.freeze(reason="a phone was stolen")
        assert (shown["is_frozen"], shown["frozen_by"]) == (True, str(desk.user_ids["carol"]))
        assert desk.wallets()[0]["is_frozen"]
        told = refused(desk.submit("alice", psbt_id, signed), 409, "VAULT_FROZEN")["detail"]
        # signerd shows it to a signer.
        assert "`custody vault unfreeze`" in told
        ok(desk.decline("bob", psbt_id))
        ok(cancel(desk, psbt_id))

    def test_p53_what_met_its_threshold_waits_and_is_sent_when_two_have_unfrozen_it(self, desk, psbt_id):
        desk.sign_off(psbt_id)
        assert desk.freeze()["waiting_psbt_ids"] == [psbt_id]
        desk.settle()
        record = desk.proposal(psbt_id)
        assert (record["status"], record["failure_code"]) == ("STALLED", "vault-frozen")
        assert desk.chain.transaction(record["txid_expected"]) is None
        desk.world.clock.advance(minutes=9)
        desk.settle()
        assert status(desk, psbt_id) == ["STALLED"]
        assert desk.unfreeze()["is_frozen"] is False
        desk.settle()
        assert status(desk, psbt_id) == ["BROADCASTING"]
        assert desk.proposal(psbt_id)["failure_code"] is None
        assert desk.freeze()["on_network_psbt_ids"] == [psbt_id]
        desk.mine()
        assert status(desk, psbt_id) == ["CONFIRMED"], "what is on the network goes on"

    def test_p53_one_person_cannot_unfreeze(self, desk):
        ok(desk.of_vault("freeze-vault", "alice"))
        for _ in range(2):
            shown = desk.unfreeze("alice")
            assert shown["unfreeze_asked_by"] == str(desk.user_ids["alice"])
        assert desk.audited()[-2:] == ["VAULT_FROZEN", "VAULT_UNFREEZE_ASKED"]
        refused(desk.tell("unfreeze-vault", vault_id="another"), 404, "NOT_FOUND")
        assert ok(desk.of_vault("freeze-vault", "bob"))["unfreeze_asked_by"] is None, (
            "a second freeze takes the word back"
        )
        assert desk.audited()[-1:] == ["VAULT_UNFREEZE_TAKEN_BACK"], "and webhooks are told of one freeze"
        assert desk.unfreeze("carol")["is_frozen"]
        assert not desk.unfreeze("bob")["is_frozen"]
        assert desk.audited()[-1:] == ["VAULT_UNFROZEN"]
        refused(desk.of_vault("unfreeze-vault", "bob"), 409, "STATE_CONFLICT")

    def test_p53_the_first_confirmation_counts_for_a_day_and_while_its_member_still_may(self, desk):
        desk.freeze()
        desk.unfreeze("alice")
        desk.later(hours=24)
        assert desk.unfreeze("bob")["unfreeze_asked_by"] == str(desk.user_ids["bob"])
        reader = add_role(desk.world, "Reader", ())
        ok(change_role(desk.admin, desk.user_ids["bob"], reader, force=True))
        assert desk.unfreeze("carol")["is_frozen"]


class TestAddressBook:
    def test_p54_a_send_elsewhere_is_refused_by_name(self, desk):
        desk.deposit(500_000, 400_000)
        desk.bind(only_address_book=True)
        entry = desk.enter("Shop", SHOP)
        assert entry["created_by"] == "1"
        problem = refused(desk.propose(10_000, 20_000), 403, "NOT_IN_ADDRESS_BOOK")
        assert CAFE in problem["detail"]
        assert SHOP not in problem["detail"]
        assert desk.audited()[-1:] == ["NOT_IN_ADDRESS_BOOK"]
        ok(desk.propose(10_000))
        ok(desk.propose(10_000, recipients=[desk.wallets()[0]["receive_address"]]))

    def test_p54_an_entry_that_is_taken_out_stops_what_waits_for_approvals(self, desk, psbt_id):
        entry = desk.enter("Shop", SHOP)
        desk.bind(only_address_book=True)
        desk.approve("alice", psbt_id)
        ok(desk.tell("remove-whitelist-address", uid=entry["uid"]))
        refused(desk.submit("bob", psbt_id, desk.signed("bob", psbt_id)), 403, "NOT_IN_ADDRESS_BOOK")
        desk.enter("Shop", SHOP)
        assert desk.approve("bob", psbt_id)["status"] == "SIGNED"

    def test_p54_a_token_goes_nowhere_else_either(self, desk):
        tokens = TokenDesk(desk)
        tokens.fund(100_000, 100_000)
        uid = tokens.started()
        desk.bind(only_address_book=True)
        for function, args in (("transfer", (SHOP, 1)), ("mint", (SHOP, 1)), ("transfer_ownership", (SHOP,))):
            problem = refused(tokens.call(uid, function, *args), 403, "NOT_IN_ADDRESS_BOOK")
            assert SHOP in problem["detail"]
        desk.enter("Shop", SHOP)
        ok(tokens.call(uid, "transfer", SHOP, 1))


def test_p55_a_maker_approves_neither_their_proposal_nor_a_version_of_it(desk):
    """Alice proposes; the administrator bumps it; Alice approves neither."""
    desk.deposit(500_000)
    desk.bind(maker_may_approve=False)
    grant(desk, "Signer", PermissionName.MANAGE_WORKSPACE.value)
    desk.limit_role("10", role_id=SIGNER_ROLE)
    first = made(by_alice(desk, "create-psbt", SHOP))
    told = refused(desk.submit("alice", first, desk.signed("alice", first)), 403, "NOT_A_SIGNER")["detail"]
    assert "waits for your approval by name, have another member propose it" in told
    second = made(bump(desk, first, fee_rate="9"))
    refused(desk.submit("alice", second, desk.signed("alice", second)), 403, "NOT_A_SIGNER")
    desk.approve("bob", second)
    assert desk.approve("carol", second)["status"] == "SIGNED"


@pytest.mark.parametrize("maker_may_approve", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_p105_what_is_accepted_is_what_its_signers_can_complete(desk, maker_may_approve, inside):
    """What no living key can complete is refused, and locks no coin. The oracle: a payment proposed in good
    times, which everybody who still may signs for real. It waits for exactly these.
    """
    address = ok(desk.create_vault("Reserve"))["address"] if inside else SHOP
    grant(desk, "Signer", PermissionName.MANAGE_WORKSPACE.value)
    silent = add_role(desk.world, "Silent", {PermissionName.MANAGE_WORKSPACE})
    for role_id in (SIGNER_ROLE, silent):
        desk.limit_role("10", role_id=role_id)
    desk.bind(maker_may_approve=maker_may_approve, approvers=[f"role:{SIGNER_ROLE}"])
    every = list(combinations_with_replacement(["active", "superseded", "lost", "silent"], 3))
    cases = drawn(every, len(every), of=f"{__name__} {inside} {maker_may_approve}")
    desk.deposit(*[50_000 for _ in range(2 * len(cases) + 2)])
    for states in cases:
        set_states(desk, dict.fromkeys(SIGNERS, "active"), silent)
        earlier = made(by_alice(desk, "create-psbt", address))
        signed = {name: desk.signed(name, earlier) for name in SIGNERS}
        set_states(desk, dict(zip(SIGNERS, states, strict=True)), silent)
        locked = len(desk.rows(CoinLockRow))
        answers = [by_alice(desk, path, address) for path in ("preview-psbt", "create-psbt")]
        record = desk.proposal(earlier)
        (waits,) = record["waits_for"]
        taken = [name for name in SIGNERS if desk.submit(name, earlier, signed[name]).status_code == 200]
        may = [each["user_id"] for each in record["signers"] if each["may_approve"]]
        assert may == waits["user_ids"] == [str(desk.user_ids[name]) for name in taken], states
        can = desk.proposal(earlier)["status"] == "SIGNED"
        assert [answer.status_code for answer in answers] == [200 if can else 409] * 2, states
        assert len(desk.rows(CoinLockRow)) - locked == can
        if not can:
            told = answers[0].json()["detail"]
            assert told.startswith("2 signers of the vault Treasury have to sign this, and ")
            for state in {*WHY} - {"superseded" if inside else ""}:
                assert (f"{WHY[state]} ({states.count(state)})" in told) == (state in states)


WHY = {
    "lost": "their key is lost",
    "superseded": "their key is superseded",
    "silent": "their role does not approve payments",
}


def by_alice(desk, path, address):
    send = {"wallet_id": desk.vault["id"], "tx_type": "send", "fee_rate": "2"}
    return desk.tell(path, desk.signers["alice"], recipients=[address], amounts_sats=[10_000], **send)
