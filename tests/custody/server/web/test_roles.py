"""Roles through HTTP: reading, making, changing, deleting, and what they carry."""

import pytest

from custody.schemas.call import PermissionName as P
from custody.server.errors import PolicyUnavailable
from custody.server.limits.stored import Policies
from custody.server.people import roles as service
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import (
    Someone,
    add_permission,
    add_role,
    add_someone,
    carried,
    change_role,
    invite,
    remove_permission,
    roles,
)

ADMINISTRATOR, SIGNER = 1, 2


@pytest.fixture
def keeper(world: World, alice: As) -> Someone:
    """Keeps the roles of workspace 1, and may see what is there."""
    return add_someone(world, "Supervisor", (P.MANAGE_ROLE, P.VIEW_BALANCES))


def clerk(**changes: object) -> dict:
    limit = {"transaction_limit": "0.25", "cycle_period": "W", "cycle_day": 5}
    role = {"name": "Clerk", "description": "Prepares payments"}
    role["permissions"] = ["PAYMENT_INIT", "VIEW_BALANCES"]
    return {"workspace_id": 1, **role, **limit, **changes}


def update(user: As, role_id: int, **changes: object):
    return user.post("/api/v1/update-role", {"role_id": role_id, "workspace_id": 1, **changes})


def delete(user: As, role_id: int, workspace_id: int = 1):
    return user.post("/api/v1/delete-role", {"role_id": role_id, "workspace_id": workspace_id})


def recorded(world: World, workspace_id: int = 1) -> list[str]:
    return world.audit_actions(f"workspace:{workspace_id}")


def test_a_role_is_made_named_anew_and_deleted(alice: As, world: World) -> None:
    """A name is one role's, however it is written."""
    for name in ("Signer", " SIGNER "):
        refused(alice.post("/api/v1/create-role", clerk(name=name)), 409, "STATE_CONFLICT")
    made = ok(alice.post("/api/v1/create-role", clerk()))
    role_id = made["RoleId"]
    assert roles(alice)["Clerk"] == made
    policy = [made[name] for name in ("TransactionLimit", "CyclePeriod", "CycleDay", "Members")]
    assert (carried(made), policy) == (["PAYMENT_INIT", "VIEW_BALANCES"], ["0.25000000", "W", 5, 0])
    assert ok(update(alice, role_id, name="CLERK"))["Description"] == "Prepares payments"
    assert ok(update(alice, role_id, description=""))["Name"] == "CLERK"
    refused(update(alice, role_id, name="signer"), 409, "STATE_CONFLICT")
    bob_id = world.member(1, "bob@example.org", "CLERK").user_id
    assert "held by 1 member and" in refused(delete(alice, role_id), 409, "STATE_CONFLICT")["detail"]
    ok(change_role(alice, bob_id, SIGNER))
    invite_id = ok(invite(alice, "dora@example.org", role_id))["invite_id"]
    assert "1 open invitation." in refused(delete(alice, role_id), 409, "STATE_CONFLICT")["detail"]
    ok(alice.post("/api/v1/revoke-invite", {"workspace_id": 1, "invite_id": invite_id}))
    ok(delete(alice, role_id))
    assert sorted(roles(alice)) == ["Administrator", "Signer"]
    refused(delete(alice, role_id), 404, "NOT_FOUND")


def test_a_policy_that_cannot_be_read_hides_no_role(
    alice: As, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A permission must be taken away even then."""

    def away(*_: object) -> None:
        raise PolicyUnavailable("The policies are away.")

    role_id = add_role(world, "Clerk", {P.PAYMENT_INIT})
    monkeypatch.setattr(Policies, "of", away)
    shown = ok(remove_permission(alice, role_id, "PAYMENT_INIT"))
    assert (shown["limit_error"], shown["Perm"]) == ("The policies are away.", [])
    assert "TransactionLimit" not in shown


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


def test_there_is_an_end_to_roles(alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_ROLES", 2)
    refused(alice.post("/api/v1/create-role", clerk()), 409, "STATE_CONFLICT")
