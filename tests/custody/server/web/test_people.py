"""Members and workspaces over HTTP: listed, added, given another role, removed, left; and the caller's own
record.
"""

import pytest
from sqlalchemy import select

from custody.schemas.permissions import PermissionName as P
from custody.server.domain import roles
from custody.server.domain.roles import KEPT, RoleTemplate
from custody.server.service.people.workspaces import add_first_role
from custody.server.store.models import AuditEventRow, WorkspaceRow
from multisig import Sats
from tests.support.custody import ok, refused
from tests.support.platform import START, As, World
from tests.support.staff import Someone, add_role, add_someone, admit, change_role, remove

ALICE = "alice@example.org"


def workspace_with(world: World, *templates: RoleTemplate) -> int:
    """Another workspace of organisation 1, with roles."""
    with world.platform.services.store.write() as db:
        place = WorkspaceRow(organisation_id=1, name="Second", description="", network="testnet",
                          chain="regtest", created_at=START)  # fmt: skip
        db.add(place)
        db.flush()
        for template in templates:
            add_first_role(db, world.clock, place, template)
        return place.id


class TestMembers:
    def test_are_listed_in_order_of_joining(self, alice: As, bob: As) -> None:
        rows = alice.get("/api/v1/get-users-from-workspace", workspace_id=1).json()
        assert [(row["UUID"], row["Email"], row["Role"]["Name"], row["can_sign"]) for row in rows] == [
            (1, ALICE, "Administrator", False),
            (2, BOB, "Signer", False),
        ]

    def test_a_refusal_is_recorded_under_the_trace_id_of_the_answer(self, bob: As, world: World) -> None:
        answer = bob.get("/api/v1/get-users-from-workspace", workspace_id=1)
        with world.platform.services.store.read() as db:
            event = db.scalars(select(AuditEventRow).where(AuditEventRow.category == "ACCESS")).one()
        assert event.trace_id == answer.json()["trace_id"] == answer.headers["X-Trace-Id"]
        assert (event.user_uuid, event.action) == (2, "PERMISSION_DENIED")
        assert event.description == "GET /api/v1/get-users-from-workspace"


class TestAdding:
    def test_a_colleague_is_a_member_at_once(self, alice: As, bob: As, world: World) -> None:
        other = workspace_with(world, *roles.FIRST_ROLES)
        world.member(other, ALICE, "Administrator")
        assert ok(admit(alice, 2, 4, other))["allocation_id"] > 0
        rows = alice.get("/api/v1/get-users-from-workspace", workspace_id=other).json()
        assert (rows[-1]["UUID"], rows[-1]["Role"]["Name"]) == (2, "Signer")
        assert world.audit_actions(f"workspace:{other}")[-1] == "MEMBER_ADDED"

    def test_twice_is_a_conflict(self, alice: As, bob: As) -> None:
        refused(admit(alice, 2, 2), 409, "STATE_CONFLICT")

    def test_a_caller_grants_only_what_they_hold(self, alice: As, bob: As, world: World) -> None:
        """P26."""
        manager = RoleTemplate("Manager", "", frozenset({P.MANAGE_WORKSPACE}), Sats(0))
        other = workspace_with(world, manager, roles.ADMINISTRATOR)
        world.member(other, BOB, "Manager")
        answer = refused(admit(bob, 1, 4, other, creator_workspace_id=other), 403, "PERMISSION_DENIED")
        assert "MANAGE_USERS" in answer["detail"]


BOB, EVE = "bob@example.org", "eve@example.com"
ADMINISTRATOR, SIGNER = 1, 2
ALICE_ID, BOB_ID = 1, 2


@pytest.fixture
def host(world: World, alice: As, bob: As) -> Someone:
    """Manages the users of workspace 1, and holds nothing else that a signer has not."""
    return add_someone(world, "Host", (P.MANAGE_USERS, P.PAYMENT_APPROVE, P.VIEW_BALANCES))


def held(user: As, workspace_id: int = 1) -> dict[int, str]:
    """Each member's role."""
    rows = ok(user.get("/api/v1/get-users-from-workspace", workspace_id=workspace_id))
    return {row["UUID"]: row["Role"]["Name"] for row in rows}


def leave(user: As, workspace_id: int = 1, **more: object):
    return user.post("/api/v1/leave-workspace", {"workspace_id": workspace_id, **more})


def second_workspace(user: As, name: str = "Second") -> int:
    body = {"workspace_id": 1, "org_id": 1, "name": name, "network": "testnet"}
    return ok(user.post("/api/v1/create-workspace", body))["WorkspaceInfo"]["uid"]


def recorded(world: World) -> list[str]:
    return world.audit_actions("workspace:1")


class TestAnotherRole:
    def test_counts_at_once(self, alice: As, bob: As, world: World) -> None:
        """P23."""
        assert ok(bob.get("/api/v1/list-wallets", workspace_id=1)) == []
        guest = add_role(world, "Guest")
        changed = ok(change_role(alice, BOB_ID, guest))
        assert (changed["UUID"], changed["Role"]["Name"]) == (BOB_ID, "Guest")
        assert recorded(world)[-1] == "MEMBER_ROLE_CHANGED"
        refused(bob.get("/api/v1/list-wallets", workspace_id=1), 403, "PERMISSION_DENIED")

    def test_that_is_held_already_is_not_recorded(self, alice: As, bob: As, world: World) -> None:
        before = recorded(world)
        assert ok(change_role(alice, BOB_ID, SIGNER))["Role"]["Name"] == "Signer"
        assert recorded(world) == before

    def test_p26_may_carry_nothing_that_the_caller_does_not_hold(self, host: Someone, alice: As) -> None:
        for user_id in (host.user_id, BOB_ID):
            answer = change_role(host.calls, user_id, ADMINISTRATOR)
            assert "cannot grant" in refused(answer, 403, "PERMISSION_DENIED")["detail"]
        assert held(alice) == {ALICE_ID: "Administrator", BOB_ID: "Signer", host.user_id: "Host"}

    def test_p26_is_not_for_those_who_may_do_more(self, host: Someone, alice: As) -> None:
        answer = change_role(host.calls, ALICE_ID, SIGNER)
        assert "carries" in refused(answer, 403, "PERMISSION_DENIED")["detail"]
        assert held(alice)[ALICE_ID] == "Administrator"

    def test_within_what_the_caller_holds_is_theirs_to_give(self, host: Someone) -> None:
        ok(change_role(host.calls, BOB_ID, host.role_id))
        ok(change_role(host.calls, BOB_ID, SIGNER))

    def test_p27_leaves_an_administrator(self, alice: As, bob: As) -> None:
        refused(change_role(alice, ALICE_ID, SIGNER, force=True), 409, "LAST_ADMIN")
        ok(change_role(alice, BOB_ID, ADMINISTRATOR))
        ok(change_role(alice, ALICE_ID, SIGNER))
        refused(change_role(alice, ALICE_ID, ADMINISTRATOR), 403, "PERMISSION_DENIED")

    @pytest.mark.parametrize("permission", KEPT)
    def test_p27_leaves_each_of_what_a_workspace_is_run_with(
        self, alice: As, bob: As, world: World, permission: P
    ) -> None:
        almost = add_someone(world, "Almost", set(P) - {permission})
        answer = change_role(alice, ALICE_ID, almost.role_id)
        assert f"hold {permission} any more" in refused(answer, 409, "LAST_ADMIN")["detail"]


class TestRemoved:
    def test_is_out_at_once(self, alice: As, bob: As, world: World) -> None:
        """P23."""
        assert ok(bob.get("/api/v1/list-wallets", workspace_id=1)) == []
        assert ok(remove(alice, BOB_ID)) == {"success": True}
        refused(bob.get("/api/v1/list-wallets", workspace_id=1), 404, "NOT_FOUND")
        assert held(alice) == {ALICE_ID: "Administrator"}
        assert recorded(world)[-1] == "MEMBER_REMOVED"
        refused(remove(alice, BOB_ID), 404, "NOT_FOUND")

    def test_may_come_back_by_an_invitation_alone(self, alice: As, bob: As) -> None:
        """A user without a membership in the organisation can only be invited."""
        ok(remove(alice, BOB_ID))
        refused(admit(alice, BOB_ID, SIGNER), 404, "NOT_FOUND")
        offer = {"invited_email": BOB, "workspace_context": 1, "org_id": 1, "role_id": SIGNER}
        invite_id = ok(alice.post("/api/v1/invite-to-workspace", offer))["invite_id"]
        ok(bob.get("/api/v1/accept-invite", invite_id=invite_id, accept="true"))
        assert held(alice)[BOB_ID] == "Signer"

    @pytest.mark.parametrize("is_left", [False, True])
    def test_does_not_come_back_by_an_invitation_from_before(
        self, alice: As, world: World, is_left: bool
    ) -> None:
        """P23: invited, then added in another way while the forgotten offer was still open."""
        second = second_workspace(alice)
        offer = {"invited_email": BOB, "workspace_context": 1, "org_id": 1, "role_id": ADMINISTRATOR}
        invite_id = ok(alice.post("/api/v1/invite-to-workspace", offer))["invite_id"]
        bob_id = world.member(second, BOB).user_id
        ok(admit(alice, bob_id, SIGNER, creator_workspace_id=second))
        bob = world.as_user(BOB)
        ok(leave(bob) if is_left else remove(alice, bob_id))
        answer = bob.get("/api/v1/accept-invite", invite_id=invite_id, accept="true")
        assert "was revoked" in refused(answer, 409, "STATE_CONFLICT")["detail"]
        refused(bob.get("/api/v1/get-my-limits", workspace_id=1), 403, "PERMISSION_DENIED")
        last = "MEMBER_LEFT" if is_left else "MEMBER_REMOVED"
        assert world.audit_actions("workspace:1")[-3:] == ["MEMBER_ADDED", "INVITATION_REVOKED", last]

    def test_keeps_the_places_elsewhere(self, alice: As, bob: As) -> None:
        """The default workspace is one of them from then on."""
        second = second_workspace(alice)
        ok(admit(alice, BOB_ID, 4, second))
        ok(remove(alice, BOB_ID))
        own = ok(bob.get("/api/v1/get-user-info"))
        assert (own["DefaultOrg"], own["DefaultWorkspace"]) == (1, second)
        ok(remove(alice, BOB_ID, second))
        own = ok(bob.get("/api/v1/get-user-info"))
        assert (own["DefaultOrg"], own["DefaultWorkspace"]) == (0, 0)
        assert own["OrganisationsInfo"]["Organisations"] == []

    def test_p26_is_no_member_who_may_do_more(self, host: Someone, alice: As) -> None:
        refused(remove(host.calls, ALICE_ID, force=True), 403, "PERMISSION_DENIED")
        ok(remove(host.calls, BOB_ID))
        assert ALICE_ID in held(alice)

    def test_p27_is_not_the_last_administrator(self, alice: As, bob: As) -> None:
        refused(remove(alice, ALICE_ID, force=True), 409, "LAST_ADMIN")
        assert held(alice) == {ALICE_ID: "Administrator", BOB_ID: "Signer"}


class TestLeaving:
    def test_takes_no_permission(self, alice: As, bob: As, world: World) -> None:
        ok(leave(bob))
        assert held(alice) == {ALICE_ID: "Administrator"}
        assert recorded(world)[-1] == "MEMBER_LEFT"
        refused(leave(bob), 404, "NOT_FOUND")

    def test_p27_is_not_for_the_last_administrator(self, alice: As, bob: As) -> None:
        refused(leave(alice, force=True), 409, "LAST_ADMIN")
        ok(change_role(alice, BOB_ID, ADMINISTRATOR))
        ok(leave(alice))
        refused(leave(bob), 409, "LAST_ADMIN")


class TestOnesOwnRecord:
    def test_what_is_left_out_stays_and_an_empty_text_takes_away(self, alice: As, world: World) -> None:
        body = {"first_name": "Alice", "surname": "Ng", "phone_number": "+49 (30) 12-34"}
        told = ok(alice.post("/api/v1/update-user-info", body))
        assert [told[name]["String"] for name in ("FirstName", "Surname", "PhoneNumber")] == [*body.values()]
        told = ok(alice.post("/api/v1/update-user-info", {"surname": "", "first_name": "Al"}))
        assert told["Surname"] == {"String": "", "Valid": False}
        assert (told["FirstName"]["String"], told["PhoneNumber"]["Valid"]) == ("Al", True)
        assert ok(alice.get("/api/v1/get-user-info")) == told
        assert world.audit_actions()[-2:] == ["USER_INFO_UPDATED"] * 2

    def test_what_is_so_already_is_not_recorded(self, alice: As, world: World) -> None:
        before = world.audit_actions()
        ok(alice.post("/api/v1/update-user-info", {}))
        ok(alice.post("/api/v1/update-user-info", {"surname": ""}))
        assert world.audit_actions() == before

    def test_nothing_else_can_be_written(self, alice: As) -> None:
        """P43, P50."""
        for body in (
            {"first_name": "a\nb"},
            {"surname": "a\u202eb"},
            {"surname": "x" * 101},
            {"phone_number": "=1+1"},
            {"phone_number": "12\n34"},
            {"phone_number": "1" * 33},
            {"email": "other@example.org"},
            {"is_operator": True},
        ):
            answer = refused(alice.post("/api/v1/update-user-info", body), 422, "VALIDATION")
            assert [fault["pointer"] for fault in answer["errors"]] == [f"/{name}" for name in body]

    def test_the_default_is_one_of_ones_own(self, alice: As, world: World) -> None:
        second = second_workspace(alice)
        for _ in range(2):
            told = ok(alice.post("/api/v1/set-default-workspace", {"workspace_id": second}))
            assert told["DefaultWorkspace"] == second
            assert world.audit_actions().count("DEFAULT_WORKSPACE_CHANGED") == 1
        world.organisation("Umbrella", EVE)
        for theirs in (3, 999):
            answer = alice.post("/api/v1/set-default-workspace", {"workspace_id": theirs})
            refused(answer, 404, "NOT_FOUND")
