"""Members through HTTP, and the border between tenants."""

import pytest

from custody.server.domain.roles import RoleTemplate
from custody.server.service.people.workspaces import add_first_role
from custody.server.store.models import Membership, Workspace
from multisig import Sats
from tests.support.platform import START, As, World

ALICE, BOB = "alice@example.org", "bob@example.org"


def second_workspace(world: World, *templates: RoleTemplate) -> int:
    """Another workspace of organisation 1, with roles."""
    with world.platform.services.store.write() as db:
        place = Workspace(
            organisation_id=1,
            name="Second",
            description="",
            network="testnet",
            chain="regtest",
            created_at=START,
        )
        db.add(place)
        db.flush()
        for template in templates:
            add_first_role(db, world.clock, place, template)
        return place.id


def addition(**changes: int) -> dict[str, int]:
    named = {
        "workspace_id": 1,
        "user_uuid": 2,
        "role_uid": 2,
        "creator_workspace_id": 1,
        "creator_org_uuid": 1,
    }
    return {**named, **changes}


class TestMembers:
    def test_are_listed_in_order_of_joining(self, alice: As, bob: As) -> None:
        rows = alice.get("/api/v1/get-users-from-workspace", workspace_id=1).json()
        assert [(row["UUID"], row["Email"], row["Role"]["Name"], row["can_sign"]) for row in rows] == [
            (1, ALICE, "Administrator", False),
            (2, BOB, "Signer", False),
        ]

    def test_need_the_permission(self, alice: As, bob: As, world: World) -> None:
        answer = bob.get("/api/v1/get-users-from-workspace", workspace_id=1)
        assert answer.status_code == 403
        assert answer.json()["code"] == "PERMISSION_DENIED"
        assert "MANAGE_USERS" in answer.json()["detail"]

    def test_a_refusal_is_recorded_under_the_trace_id_of_the_answer(self, bob: As, world: World) -> None:
        from sqlalchemy import select

        from custody.server.store.models import AuditEvent

        answer = bob.get("/api/v1/get-users-from-workspace", workspace_id=1)
        with world.platform.services.store.read() as db:
            event = db.scalars(select(AuditEvent).where(AuditEvent.category == "ACCESS")).one()
        assert event.trace_id == answer.json()["trace_id"] == answer.headers["X-Trace-Id"]
        assert (event.user_uuid, event.action) == (2, "PERMISSION_DENIED")
        assert event.description == "GET /api/v1/get-users-from-workspace"


class TestTenants:
    def test_another_tenants_workspace_is_not_there(self, eve: As) -> None:
        """P24: the same answer as for one that never was."""
        theirs = eve.get("/api/v1/get-users-from-workspace", workspace_id=1)
        none = eve.get("/api/v1/get-users-from-workspace", workspace_id=999)
        assert theirs.status_code == none.status_code == 404
        told = [{k: v for k, v in a.json().items() if k != "trace_id"} for a in (theirs, none)]
        assert told[0] == told[1]

    def test_a_permission_held_in_another_workspace_is_none_here(self, alice: As, world: World) -> None:
        """P25: Alice administers the first workspace and is no member of the second."""
        other = second_workspace(world)
        assert alice.get("/api/v1/get-users-from-workspace", workspace_id=other).status_code == 403

    def test_a_lesser_role_in_one_workspace_stays_lesser(self, alice: As, world: World) -> None:
        """P25: administrator of one, a mere viewer of the other."""
        from custody.schemas.users import PermissionName

        viewer = RoleTemplate("Viewer", "", frozenset({PermissionName.VIEW_BALANCES}), Sats(0))
        other = second_workspace(world, viewer)
        world.member(other, ALICE, "Viewer")
        assert alice.get("/api/v1/get-users-from-workspace", workspace_id=other).status_code == 403
        assert alice.get("/api/v1/get-users-from-workspace", workspace_id=1).status_code == 200

    def test_a_role_taken_away_counts_at_once(self, alice: As, world: World) -> None:
        """P23: asked on every call, not when the token was made."""
        assert alice.get("/api/v1/get-users-from-workspace", workspace_id=1).status_code == 200
        with world.platform.services.store.write() as db:
            db.get_one(Membership, 1).role_id = 2
        assert alice.get("/api/v1/get-users-from-workspace", workspace_id=1).status_code == 403


class TestAdding:
    def test_a_colleague_is_a_member_at_once(self, alice: As, bob: As, world: World) -> None:
        from custody.server.domain.roles import FIRST_ROLES

        other = second_workspace(world, *FIRST_ROLES)
        world.member(other, ALICE, "Administrator")
        answer = alice.post("/api/v1/add-workspace-to-user", addition(workspace_id=other, role_uid=4))
        assert answer.status_code == 200, answer.text
        assert answer.json()["allocation_id"] > 0
        rows = alice.get("/api/v1/get-users-from-workspace", workspace_id=other).json()
        assert (rows[-1]["UUID"], rows[-1]["Role"]["Name"]) == (2, "Signer")
        assert world.audit_actions(f"workspace:{other}")[-1] == "MEMBER_ADDED"

    def test_twice_is_a_conflict(self, alice: As, bob: As) -> None:
        answer = alice.post("/api/v1/add-workspace-to-user", addition())
        assert answer.status_code == 409
        assert answer.json()["code"] == "STATE_CONFLICT"

    def test_needs_the_permission(self, bob: As) -> None:
        assert bob.post("/api/v1/add-workspace-to-user", addition(user_uuid=1)).status_code == 403

    @pytest.mark.parametrize(
        "named",
        [
            {"user_uuid": 3},  # Eve, of another organisation
            {"user_uuid": 999},
            {"role_uid": 3},  # a role of another workspace
            {"role_uid": 999},
            {"creator_org_uuid": 2},
            {"creator_workspace_id": 2},
            {"workspace_id": 2},
        ],
    )
    def test_what_belongs_to_another_tenant_is_not_there(
        self, alice: As, bob: As, eve: As, world: World, named: dict
    ) -> None:
        """P24."""
        assert alice.post("/api/v1/add-workspace-to-user", addition(**named)).status_code == 404
        assert len(eve.get("/api/v1/get-users-from-workspace", workspace_id=2).json()) == 1

    def test_nobody_grants_what_they_do_not_hold(self, alice: As, bob: As, world: World) -> None:
        """P26."""
        from custody.schemas.users import PermissionName
        from custody.server.domain.roles import ADMINISTRATOR

        manager = RoleTemplate("Manager", "", frozenset({PermissionName.MANAGE_WORKSPACE}), Sats(0))
        other = second_workspace(world, manager, ADMINISTRATOR)
        world.member(other, BOB, "Manager")
        answer = bob.post(
            "/api/v1/add-workspace-to-user",
            addition(workspace_id=other, creator_workspace_id=other, user_uuid=1, role_uid=4),
        )
        assert answer.status_code == 403
        assert "MANAGE_USERS" in answer.json()["detail"]
