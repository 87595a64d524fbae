"""Who is let in to the calls about people, roles and workspaces: each row of the table, against a live platform."""

import pytest

from custody.schemas.users import PermissionName as P
from custody.server.web import people
from custody.server.web.endpoint import Endpoint
from tests.support.custody import refused
from tests.support.platform import As, World
from tests.support.staff import Someone, add_role, add_someone

ALICE, EVE = "alice@example.org", "eve@example.com"
ROWS = tuple(row for row in (*people.ENDPOINTS, *people.ENDPOINTS) if isinstance(row.needs, frozenset))
# What each call takes beside the workspace, if it is to reach its own rules: user 2 is Bob, role 3 his, role 4
# nobody's; user 3 is a colleague in another workspace.
WHAT = {
    "/api/v1/set-default-workspace": {},
    "/api/v1/get-users-from-workspace": {},
    "/api/v1/add-workspace-to-user": {
        "user_uuid": 3,
        "role_uid": 3,
        "creator_workspace_id": 1,
        "creator_org_uuid": 1,
    },
    "/api/v1/change-user-role": {"user_uuid": 2, "role_id": 3},
    "/api/v1/remove-user-from-workspace": {"user_uuid": 2},
    "/api/v1/leave-workspace": {},
    "/api/v1/get-roles-and-perms-detailed": {},
    "/api/v1/create-role": {
        "name": "New",
        "transaction_limit": "0",
        "cycle_period": "M",
        "cycle_day": 1,
    },
    "/api/v1/update-role": {"role_id": 3, "description": "anew"},
    "/api/v1/delete-role": {"role_id": 4},
    "/api/v1/add-perm-to-role": {"role_id": 3, "rule_name": "VIEW_LOGS"},
    "/api/v1/remove-perm-from-role": {"role_id": 3, "rule_name": "VIEW_LOGS"},
    "/api/v1/create-workspace": {"org_id": 1, "name": "New", "network": "testnet"},
    "/api/v1/update-workspace": {"description": "anew"},
}
# What the caller must hold beside the row's own permission: nobody grants what they do not hold.
BESIDE = {"/api/v1/add-perm-to-role": {P.VIEW_LOGS}}


@pytest.fixture
def bob(world: World) -> Someone:
    """A member of workspace 1 whose role carries nothing. Workspace 2 is of the same organisation."""
    world.organisation("Acme", ALICE)
    bob = add_someone(world, "Bob")
    assert (bob.user_id, bob.role_id, add_role(world, "Unheld")) == (2, 3, 4)
    second = {"workspace_id": 1, "org_id": 1, "name": "Second", "network": "testnet"}
    assert world.as_user(ALICE).post("/api/v1/create-workspace", second).status_code == 200
    assert add_someone(world, "Colleague", workspace_id=2).user_id == 3
    return bob


def ask(row: Endpoint, user: As, workspace_id: int = 1):
    what = {"workspace_id": workspace_id, **WHAT[row.path]}
    return user.get(row.path, **what) if row.method == "GET" else user.post(row.path, what)


def named(row: Endpoint) -> str:
    return row.path.rpartition("/")[2]


def test_every_row_is_here() -> None:
    assert sorted(WHAT) == sorted(row.path for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_each_permission_lets_in_and_no_other(bob: Someone, world: World, row: Endpoint) -> None:
    """The permission alone is enough, whichever of several it is; all the others together are not."""
    if not row.permissions:
        assert ask(row, bob.calls).status_code == 200
        return
    for number, permission in enumerate(sorted(row.permissions)):
        holder = add_someone(world, f"Holder{number}", {permission, *BESIDE.get(row.path, ())})
        answer = ask(row, holder.calls)
        assert answer.status_code in {200, 404, 409}, answer.text
        assert number or answer.status_code == 200, answer.text
    other = add_someone(world, "Other", set(P) - row.permissions)
    assert "does not carry" in refused(ask(row, other.calls), 403, "PERMISSION_DENIED")["detail"]


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_p25_a_permission_held_in_another_workspace_is_none_here(
    bob: Someone, world: World, row: Endpoint
) -> None:
    there = add_someone(world, "There", set(P), workspace_id=2)
    refused(ask(row, there.calls), 403, "PERMISSION_DENIED")


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_p24_another_tenants_workspace_is_not_there(bob: Someone, world: World, row: Endpoint) -> None:
    world.organisation("Umbrella", EVE)
    eve = world.as_user(EVE)
    theirs = refused(ask(row, eve), 404, "NOT_FOUND")["detail"]
    assert theirs == refused(ask(row, eve, 999), 404, "NOT_FOUND")["detail"]


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_somebody_who_is_not_signed_in_is_not_let_in(bob: Someone, world: World, row: Endpoint) -> None:
    refused(ask(row, As(world.http, {})), 401, "UNAUTHENTICATED")
