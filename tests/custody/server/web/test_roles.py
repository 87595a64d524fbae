"""Roles through HTTP: reading, making, changing, deleting, and what they carry."""

import pytest

from custody.schemas.permissions import PermissionName as P
from custody.server.errors import PolicyUnavailable
from custody.server.limits.stored import Policies
from custody.server.people import roles as service
from custody.server.rules import roles as rules
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import (
    Someone,
    add_permission,
    add_role,
    add_someone,
    carried,
    remove_permission,
    roles,
)

ALICE = "alice@example.org"
ADMINISTRATOR, SIGNER = 1, 2
OFFER = {"invited_email": "dora@example.org", "workspace_context": 1, "org_id": 1, "role_id": SIGNER}


@pytest.fixture
def keeper(world: World, alice: As) -> Someone:
    """Keeps the roles of workspace 1, and may see what is there."""
    return add_someone(world, "Supervisor", (P.MANAGE_ROLE, P.VIEW_BALANCES))


def clerk(**changes: object) -> dict:
    return {
        "workspace_id": 1,
        "name": "Clerk",
        "description": "Prepares payments",
        "permissions": ["PAYMENT_INIT", "VIEW_BALANCES"],
        "transaction_limit": "0.25",
        "cycle_period": "W",
        "cycle_day": 5,
        **changes,
    }


def update(user: As, role_id: int, **changes: object):
    return user.post("/api/v1/update-role", {"role_id": role_id, "workspace_id": 1, **changes})


def delete(user: As, role_id: int, workspace_id: int = 1):
    return user.post("/api/v1/delete-role", {"role_id": role_id, "workspace_id": workspace_id})


def recorded(world: World, workspace_id: int = 1) -> list[str]:
    return world.audit_actions(f"workspace:{workspace_id}")


class TestReading:
    def test_a_role_has_every_field(self, alice: As) -> None:
        assert roles(alice)["Signer"] == {
            "RoleId": SIGNER,
            "Name": "Signer",
            "Description": "Approves movements",
            "Perm": [{"UID": 3, "RuleName": "PAYMENT_APPROVE"}, {"UID": 4, "RuleName": "VIEW_BALANCES"}],
            "WorkspaceId": 1,
            "TransactionLimit": "0.00000000",
            "CyclePeriod": "M",
            "CycleDay": 1,
            "Members": 0,
        }
        assert roles(alice)["Administrator"]["Members"] == 1

    def test_a_policy_that_cannot_be_read_hides_no_role(
        self, alice: As, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A permission must be taken away even then."""

        def away(*_: object) -> None:
            raise PolicyUnavailable("The policies are away.")

        role_id = add_role(world, "Clerk", {P.PAYMENT_INIT})
        monkeypatch.setattr(Policies, "of", away)
        shown = ok(remove_permission(alice, role_id, "PAYMENT_INIT"))
        assert (shown["limit_error"], shown["Perm"]) == ("The policies are away.", [])
        assert "TransactionLimit" not in shown


class TestMaking:
    def test_a_role_is_as_it_was_asked_for(self, alice: As, world: World) -> None:
        made = ok(alice.post("/api/v1/create-role", clerk()))
        assert roles(alice)["Clerk"] == made
        assert carried(made) == ["PAYMENT_INIT", "VIEW_BALANCES"]
        policy = [made[name] for name in ("TransactionLimit", "CyclePeriod", "CycleDay", "Members")]
        assert policy == ["0.25000000", "W", 5, 0]
        query = {"workspace_id": 1, "role_id": made["RoleId"]}
        assert ok(alice.get("/api/v1/get-role-limit", **query))["Limit"] == "0.25000000"
        assert recorded(world)[-1] == "ROLE_CREATED"

    def test_a_name_is_one_roles(self, alice: As) -> None:
        for name in ("Signer", "signer", " SIGNER "):
            refused(alice.post("/api/v1/create-role", clerk(name=name)), 409, "STATE_CONFLICT")

    def test_what_is_no_role_is_refused(self, alice: As) -> None:
        """P21, P50."""
        for changes in (
            {"name": ""},
            {"name": "a\nb"},
            {"description": "a\u202eb"},
            {"permissions": ["EVERYTHING"]},
            {"permissions": ["PAYMENT_INIT"] * 8},
            {"transaction_limit": "-1"},
            {"transaction_limit": "1e3"},
            {"transaction_limit": "21000001"},
            {"cycle_day": 8},
            {"cycle_period": "D"},
            {"is_operator": True},
        ):
            refused(alice.post("/api/v1/create-role", clerk(**changes)), 422, "VALIDATION")


class TestNaming:
    def test_what_is_left_out_stays(self, alice: As, world: World) -> None:
        assert ok(update(alice, SIGNER, name="Approver"))["Description"] == "Approves movements"
        assert ok(update(alice, SIGNER, description=""))["Name"] == "Approver"
        assert recorded(world)[-2:] == ["ROLE_UPDATED"] * 2

    def test_a_role_may_take_its_own_name_otherwise_written(self, alice: As) -> None:
        assert ok(update(alice, SIGNER, name="SIGNER"))["Name"] == "SIGNER"
        refused(update(alice, SIGNER, name="administrator"), 409, "STATE_CONFLICT")


def test_p26_nobody_puts_into_a_role_what_they_lack_or_changes_one_that_carries_more(
    keeper: Someone, world: World
) -> None:
    before = roles(keeper.calls)
    for answer in (
        keeper.calls.post("/api/v1/create-role", clerk()),
        add_permission(keeper.calls, keeper.role_id, "PAYMENT_INIT"),
        add_permission(keeper.calls, SIGNER, "VIEW_BALANCES"),
        remove_permission(keeper.calls, SIGNER, "VIEW_BALANCES"),
        update(keeper.calls, ADMINISTRATOR, name="Guest"),
        delete(keeper.calls, SIGNER),
    ):
        refused(answer, 403, "PERMISSION_DENIED")
    assert (roles(keeper.calls), recorded(world)[-6:]) == (before, ["PERMISSION_DENIED"] * 6)
    assert carried(ok(keeper.calls.post("/api/v1/create-role", clerk(permissions=["VIEW_BALANCES"]))))


def test_p27_the_last_administrator_keeps_what_a_workspace_is_run_with(alice: As, world: World) -> None:
    answer = remove_permission(alice, ADMINISTRATOR, "MANAGE_ROLE", force=True)
    assert "MANAGE_ROLE" in refused(answer, 409, "LAST_ADMIN")["detail"]
    add_someone(world, "Other", rules.EVERY_PERMISSION)
    ok(remove_permission(alice, ADMINISTRATOR, "MANAGE_ROLE"))


def test_there_is_an_end_to_roles(alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_ROLES", 2)
    refused(alice.post("/api/v1/create-role", clerk()), 409, "STATE_CONFLICT")


class TestDeleting:
    def test_a_role_without_members_is_deleted(self, alice: As, world: World) -> None:
        ok(delete(alice, SIGNER))
        assert "Signer" not in roles(alice)
        refused(delete(alice, SIGNER), 404, "NOT_FOUND")
        assert recorded(world)[-1] == "ROLE_DELETED"

    def test_a_role_that_is_held_stays(self, alice: As, world: World) -> None:
        world.member(1, "bob@example.org")
        assert "held by 1 member and" in refused(delete(alice, SIGNER), 409, "STATE_CONFLICT")["detail"]

    def test_a_role_that_is_offered_stays_until_the_offer_is_decided(self, alice: As, world: World) -> None:
        invite_id = ok(alice.post("/api/v1/invite-to-workspace", OFFER))["invite_id"]
        assert "1 open invitation." in refused(delete(alice, SIGNER), 409, "STATE_CONFLICT")["detail"]
        ok(alice.post("/api/v1/revoke-invite", {"workspace_id": 1, "invite_id": invite_id}))
        ok(delete(alice, SIGNER))


class TestPermissions:
    def test_one_that_is_added_or_taken_away_counts_at_once(self, alice: As, world: World) -> None:
        """P23."""
        dora = add_someone(world, "Dora")
        refused(dora.calls.get("/api/v1/list-wallets", workspace_id=1), 403, "PERMISSION_DENIED")
        assert carried(ok(add_permission(alice, dora.role_id, "VIEW_BALANCES"))) == ["VIEW_BALANCES"]
        assert ok(dora.calls.get("/api/v1/list-wallets", workspace_id=1)) == []
        assert carried(ok(remove_permission(alice, dora.role_id, "VIEW_BALANCES"))) == []
        refused(dora.calls.get("/api/v1/list-wallets", workspace_id=1), 403, "PERMISSION_DENIED")
