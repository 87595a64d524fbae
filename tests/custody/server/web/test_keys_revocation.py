"""Revoking a key through HTTP: who may, what is refused, and what a revoked key still does (P47)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx
import pytest
from sqlalchemy import select

from custody.schemas.call import PermissionName
from custody.server.store.models import AuditEventRow, MembershipRow
from multisig import Psbt
from tests.support.custody import Desk, ok, refused
from tests.support.platform import As
from tests.support.prepared import Story, nothing
from tests.support.staff import add_someone, create_workspace, remove, roles
from tests.support.two_people import ask, decide, rule, ruled


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    return a_deposit if "psbt_id" in request.fixturenames else nothing


def a_deposit(desk: Desk) -> None:
    desk.deposit(500_000)


@pytest.fixture
def psbt_id(desk: Desk) -> str:
    return ok(desk.propose(100_000))["psbt_id"]


def key_of(desk: Desk, name: str) -> str:
    return ok(desk.signers[name].get("/api/v1/keys"))[0]["ID"]


def revoke(user: As, key_id: str, reason: str = "lost", **more: bool):
    return user.post("/api/v1/revoke-key", {"key_id": key_id, "reason": reason, **more})


def actions(desk: Desk, category: str) -> list[str]:
    query = select(AuditEventRow.action).where(AuditEventRow.category == category)
    with desk.store.read() as db:
        return list(db.scalars(query.order_by(AuditEventRow.timestamp, AuditEventRow.position)))


@pytest.mark.parametrize("reason", ["superseded", "lost"])
def test_an_owner_revokes_their_own_once_and_a_lost_one_is_never_found(desk: Desk, reason: str) -> None:
    alice = desk.signers["alice"]
    (key,) = ok(alice.get("/api/v1/keys"))
    assert key["RevokedReason"] == {"String": "", "Valid": False}
    shown = ok(revoke(alice, key["ID"], reason))
    assert (shown["Status"], shown["RevokedReason"]) == ("revoked", {"String": reason, "Valid": True})
    assert ok(alice.get("/api/v1/keys")) == [shown]
    desk.world.clock.advance(minutes=1)
    assert ok(revoke(alice, key["ID"], reason)) == shown
    assert actions(desk, "KEYS").count("KEY_REVOKED") == 1
    assert ok(revoke(alice, key["ID"], "lost"))["RevokedReason"]["String"] == "lost"
    problem = refused(revoke(alice, key["ID"], "superseded"), 409, "STATE_CONFLICT")
    assert "final" in problem["detail"]


class TestQuorum:
    @pytest.mark.parametrize("reason", ["superseded", "lost"])
    def test_the_last_key_that_a_vault_can_spare_is_not_the_last_one(self, desk: Desk, reason: str) -> None:
        """Who may not see a vault is not told its name."""
        ok(revoke(desk.signers["carol"], key_of(desk, "carol")))
        bob, key_id = desk.signers["bob"], key_of(desk, "bob")
        problem = refused(revoke(bob, key_id, reason), 409, "STATE_CONFLICT")
        assert "'Treasury'" in problem["detail"]
        assert "force" in problem["detail"]
        porter = add_someone(desk.world, "Porter", {PermissionName.MANAGE_USERS}).calls
        problem = refused(revoke(porter, key_id), 409, "STATE_CONFLICT")
        assert "Treasury" not in problem["detail"]
        assert "1 of workspaces that you do not see" in problem["detail"]
        assert ok(bob.get("/api/v1/keys"))[0]["Status"] == "active"
        assert ok(revoke(bob, key_id, reason, force=True))["Status"] == "revoked"

    def test_a_superseded_key_is_counted_where_it_is_needed_to_move_on(self, desk: Desk) -> None:
        """Carol's is lost, Alice's replaced: Bob and Alice's old device are the two who can empty the
        vault.
        """
        ok(revoke(desk.signers["carol"], key_of(desk, "carol")))
        alice, key_id = desk.signers["alice"], key_of(desk, "alice")
        ok(revoke(alice, key_id, "superseded", force=True))
        refused(revoke(alice, key_id, "lost"), 409, "STATE_CONFLICT")
        ok(revoke(alice, key_id, "lost", force=True))


class TestAdministrator:
    def test_marks_a_members_key_lost_and_does_not_replace_it(self, desk: Desk) -> None:
        """A colleague is no administrator."""
        key_id = key_of(desk, "alice")
        refused(revoke(desk.admin, key_id, "superseded"), 403, "PERMISSION_DENIED")
        refused(revoke(desk.signers["bob"], key_id), 403, "PERMISSION_DENIED")
        assert ok(revoke(desk.admin, key_id))["Status"] == "revoked"
        with desk.store.read() as db:
            event = db.scalars(select(AuditEventRow).where(AuditEventRow.action == "KEY_REVOKED")).one()
        assert event.user_uuid != desk.user_ids["alice"]
        assert event.description == f"key {key_id} of user {desk.user_ids['alice']}, lost"

    def test_is_asked_for_in_every_workspace_that_the_key_serves(self, desk: Desk) -> None:
        """P25: MANAGE_USERS in one workspace cannot take away a signer's key in another."""
        key_id = key_of(desk, "alice")
        founder = add_someone(desk.world, "Founder", {PermissionName.MANAGE_WORKSPACE}).calls
        second = ok(create_workspace(founder))["WorkspaceInfo"]["uid"]
        desk.world.member(second, "alice@example.org")
        refused(revoke(desk.admin, key_id), 403, "PERMISSION_DENIED")
        assert ok(desk.signers["alice"].get("/api/v1/keys"))[0]["Status"] == "active"
        ok(revoke(desk.signers["alice"], key_id))

    def test_one_who_is_no_member_any_more_is_none(self, desk: Desk) -> None:
        """P23."""
        key_id = key_of(desk, "alice")
        with desk.store.write() as db:
            db.delete(db.scalars(select(MembershipRow).where(MembershipRow.user_id == 1)).one())
        refused(revoke(desk.admin, key_id), 404, "NOT_FOUND")

    def test_of_another_tenant_finds_no_such_key(self, desk: Desk) -> None:
        """P24: the same words as for one that never was."""
        desk.world.organisation("Umbrella", "eve@example.com")
        eve = desk.world.as_user("eve@example.com")
        theirs, none = revoke(eve, key_of(desk, "alice")), revoke(eve, "no-such-key")
        assert theirs.status_code == none.status_code == 404
        assert theirs.json()["detail"] == none.json()["detail"]


class TestApprovals:
    """P47."""

    @pytest.mark.parametrize(("reason", "status"), [("superseded", 200), ("lost", 403)])
    def test_a_superseded_key_moves_coins_on_and_a_lost_one_signs_nothing(
        self, desk: Desk, psbt_id: str, reason: str, status: int
    ) -> None:
        """Neither sends anything away."""
        attic = ok(desk.create_vault("Attic"))
        desk.deposit(500_000, to=desk.vault["receive_address"])
        inward = ok(desk.propose(100_000, recipients=[attic["receive_address"]]))["psbt_id"]
        ok(revoke(desk.signers["alice"], key_of(desk, "alice"), reason))
        answer = desk.submit("alice", inward, desk.signed("alice", inward))
        assert answer.status_code == status, answer.text
        refused(desk.submit("alice", psbt_id, desk.signed("alice", psbt_id)), 403, "KEY_REVOKED")
        assert desk.proposal(psbt_id)["collected_signatures"] == 0

    def test_what_a_lost_key_approved_and_is_pending_is_asked_again(self, desk: Desk, psbt_id: str) -> None:
        """Alice's device signed, perhaps by a thief's hand: two other signers must approve."""
        desk.approve("alice", psbt_id)
        ok(revoke(desk.signers["alice"], key_of(desk, "alice")))
        shown = desk.proposal(psbt_id, "bob")
        assert (shown["status"], shown["collected_signatures"]) == ("PENDING", 0)
        assert not any(signer["is_signed"] for signer in shown["signers"])
        assert not any(item.partial_signatures for item in Psbt.parse(shown["psbt_base64"]).inputs)
        assert "SIGNATURE_WITHDRAWN" in actions(desk, "SIGNING")
        assert desk.approve("bob", psbt_id)["status"] == "PENDING"
        assert desk.approve("carol", psbt_id)["status"] == "SIGNED"
        desk.settle()
        assert desk.proposal(psbt_id)["status"] == "BROADCASTING"

    def test_the_others_approvals_stay(self, desk: Desk) -> None:
        ok(desk.create_vault("Reserve", m=3))
        reserve = next(vault for vault in desk.wallets() if vault["name"] == "Reserve")
        desk.deposit(500_000, to=reserve["receive_address"])
        desk.vault = reserve
        psbt_id = ok(desk.propose(100_000))["psbt_id"]
        desk.approve("alice", psbt_id)
        desk.approve("bob", psbt_id)
        ok(revoke(desk.signers["alice"], key_of(desk, "alice"), force=True))
        shown = desk.proposal(psbt_id)
        assert shown["collected_signatures"] == 1
        signed = {signer["user_id"] for signer in shown["signers"] if signer["is_signed"]}
        assert signed == {str(desk.user_ids["bob"])}

    def test_what_a_superseded_key_approved_stays(self, desk: Desk, psbt_id: str) -> None:
        desk.approve("alice", psbt_id)
        ok(revoke(desk.signers["alice"], key_of(desk, "alice"), "superseded"))
        assert desk.proposal(psbt_id)["collected_signatures"] == 1
        assert desk.approve("bob", psbt_id)["status"] == "SIGNED"

    def test_what_met_its_threshold_goes_its_way(self, desk: Desk, psbt_id: str) -> None:
        desk.approve("alice", psbt_id)
        desk.approve("bob", psbt_id)
        before = desk.proposal(psbt_id)
        ok(revoke(desk.signers["alice"], key_of(desk, "alice")))
        # She signs nothing more, and what she signed stands.
        before["signers"][0]["may_approve"] = False
        assert desk.proposal(psbt_id) == before


def test_a_key_that_is_lost_while_it_signs_has_signed_nothing(desk: Desk, psbt_id: str) -> None:
    """P47: whichever of the two comes first, nothing of the lost key counts when both are over."""
    signed, key_id = desk.signed("alice", psbt_id), key_of(desk, "alice")
    begin = Barrier(2)

    def at_once(act: Callable[[], httpx.Response]) -> int:
        begin.wait(timeout=10)
        return act().status_code

    acts = (lambda: desk.submit("alice", psbt_id, signed), lambda: revoke(desk.admin, key_id))
    with ThreadPoolExecutor(2) as pool:
        signing, losing = pool.map(at_once, acts)
    assert signing in {200, 403}
    assert losing == 200
    shown = desk.proposal(psbt_id, "bob")
    assert (shown["status"], shown["collected_signatures"]) == ("PENDING", 0)
    assert not any(item.partial_signatures for item in Psbt.parse(shown["psbt_base64"]).inputs)


def test_p24_another_tenants_log_does_not_name_who_withdrew_a_former_members_approval(
    desk: Desk, psbt_id: str
) -> None:
    """Alice approved, left this organisation, and works for another, whose administrator marks her key
    lost.
    """
    desk.approve("alice", psbt_id)
    place = desk.world.organisation("Umbrella", "eve@example.com")
    desk.world.member(place.workspace_id, "alice@example.org")
    ok(remove(desk.admin, desk.user_ids["alice"]))
    ok(revoke(desk.world.as_user("eve@example.com"), key_of(desk, "alice")))
    query = select(AuditEventRow).where(AuditEventRow.action == "SIGNATURE_WITHDRAWN")
    with desk.store.read() as db:
        event = db.scalars(query).one()
    assert (event.workspace_uid, event.user_name, event.user_uuid) == ("1", "platform", 0)
    assert event.trace_id
    assert desk.proposal(psbt_id)["collected_signatures"] == 0


class TestSecondPerson:
    """P70: one administrator, or a thief of their session, takes a member's voice from vaults for good."""

    @pytest.fixture
    def dora(self, desk: Desk) -> As:
        return ruled(desk.world, desk.admin)

    def test_p70_a_members_key_is_marked_lost_by_two(self, desk: Desk, dora: As) -> None:
        key_id = key_of(desk, "alice")
        problem = refused(revoke(desk.admin, key_id), 409, "SECOND_PERSON_NEEDED")
        assert "The owner can mark it lost alone" in problem["detail"]
        refused(revoke(desk.admin, key_id, workspace_id=1, force=True), 409, "SECOND_PERSON_NEEDED")
        change = ok(ask(desk.admin, "revoke-key", key_id=key_id, reason="lost"))
        assert ok(desk.signers["alice"].get("/api/v1/keys"))[0]["Status"] == "active"
        applied = ok(decide(dora, change))
        assert applied["answer"]["RevokedReason"]["String"] == "lost"
        assert actions(desk, "KEYS")[-1] == "KEY_REVOKED"
        # One's own is stopped at once.
        assert ok(revoke(desk.signers["bob"], key_of(desk, "bob"), force=True))["Status"] == "revoked"

    def test_p70_two_of_one_organisation_do_not_speak_for_another(self, desk: Desk, dora: As) -> None:
        """The key serves a second tenant, who has the rule, too."""
        world, alice = desk.world, desk.user_ids["alice"]
        world.organisation("Umbrella", "eve@example.com")
        world.member(2, "admin@example.org", "Administrator")
        world.member(2, "alice@example.org")
        eve = world.as_user("eve@example.com")
        role_id = roles(eve, 2)["Administrator"]["RoleId"]
        ok(rule(eve, workspace_id=2, role_id=role_id))
        asked = ask(desk.admin, "revoke-key", key_id=key_of(desk, "alice"), reason="lost")
        problem = refused(asked, 409, "SECOND_PERSON_NEEDED")
        assert str(alice) not in problem["detail"]
