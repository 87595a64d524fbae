"""Members and workspaces over HTTP: listed, added, given another role, removed, left; and the caller's own
record.
"""

import pytest

from custody.schemas.call import PermissionName as P
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import (
    Someone,
    add_role,
    add_someone,
    admit,
    change_role,
    create_workspace,
    invite,
    remove,
)

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


def second_workspace(user: As) -> int:
    return ok(create_workspace(user))["WorkspaceInfo"]["uid"]


def test_p23_a_member_is_added_moved_removed_and_leaves(alice: As, bob: As, world: World) -> None:
    """Each counts at once, and moves the default workspace to one of their own."""
    second = second_workspace(alice)
    assert ok(admit(alice, BOB_ID, 4, second))["allocation_id"] > 0
    assert list(held(alice, second).items()) == [(ALICE_ID, "Administrator"), (BOB_ID, "Signer")]
    assert ok(bob.get("/api/v1/list-wallets", workspace_id=1)) == []
    guest = add_role(world, "Guest")
    changed = ok(change_role(alice, BOB_ID, guest))
    assert (changed["UUID"], changed["Role"]["Name"]) == (BOB_ID, "Guest")
    refused(bob.get("/api/v1/list-wallets", workspace_id=1), 403, "PERMISSION_DENIED")
    assert ok(remove(alice, BOB_ID)) == {"success": True}
    refused(bob.get("/api/v1/get-my-limits", workspace_id=1), 403, "PERMISSION_DENIED")
    refused(remove(alice, BOB_ID), 404, "NOT_FOUND")
    assert held(alice) == {ALICE_ID: "Administrator"}
    own = ok(bob.get("/api/v1/get-user-info"))
    assert (own["DefaultOrg"], own["DefaultWorkspace"]) == (1, second)
    ok(leave(bob, second))
    refused(leave(bob, second), 404, "NOT_FOUND")
    own = ok(bob.get("/api/v1/get-user-info"))
    assert (own["DefaultOrg"], own["DefaultWorkspace"]) == (0, 0)
    assert own["OrganisationsInfo"]["Organisations"] == []


@pytest.mark.parametrize("is_left", [False, True])
def test_p23_nobody_comes_back_by_an_invitation_from_before(alice: As, world: World, is_left: bool) -> None:
    """Invited, then added in another way while the forgotten offer was still open."""
    second = second_workspace(alice)
    invite_id = ok(invite(alice, BOB, ADMINISTRATOR))["invite_id"]
    bob_id = world.member(second, BOB).user_id
    ok(admit(alice, bob_id, SIGNER, creator_workspace_id=second))
    bob = world.as_user(BOB)
    ok(leave(bob) if is_left else remove(alice, bob_id))
    answer = bob.get("/api/v1/accept-invite", invite_id=invite_id, accept="true")
    assert "was revoked" in refused(answer, 409, "STATE_CONFLICT")["detail"]
    refused(bob.get("/api/v1/get-my-limits", workspace_id=1), 403, "PERMISSION_DENIED")
    last = "MEMBER_LEFT" if is_left else "MEMBER_REMOVED"
    assert world.audit_actions("workspace:1")[-3:] == ["MEMBER_ADDED", "INVITATION_REVOKED", last]


def test_p26_nobody_gives_more_than_they_hold_or_moves_who_may_do_more(host: Someone, alice: As) -> None:
    for answer, words in (
        (change_role(host.calls, host.user_id, ADMINISTRATOR), "cannot grant"),
        (change_role(host.calls, BOB_ID, ADMINISTRATOR), "cannot grant"),
        (change_role(host.calls, ALICE_ID, SIGNER), "This role carries"),
        (remove(host.calls, ALICE_ID, force=True), "This role carries"),
    ):
        assert words in refused(answer, 403, "PERMISSION_DENIED")["detail"]
    assert held(alice) == {ALICE_ID: "Administrator", BOB_ID: "Signer", host.user_id: "Host"}
    ok(change_role(host.calls, BOB_ID, host.role_id))
    ok(remove(host.calls, BOB_ID))


def test_p27_the_last_administrator_stays(alice: As, bob: As) -> None:
    for answer in (
        change_role(alice, ALICE_ID, SIGNER, force=True),
        remove(alice, ALICE_ID, force=True),
        leave(alice, force=True),
    ):
        told = refused(answer, 409, "LAST_ADMIN")["detail"]
        assert "No member of the workspace would hold" in told
    ok(change_role(alice, BOB_ID, ADMINISTRATOR))
    ok(leave(alice))


def test_of_ones_own_record_what_is_left_out_stays_and_an_empty_text_takes_away(
    alice: As, world: World
) -> None:
    body = {"first_name": "Alice", "surname": "Ng", "phone_number": "+49 (30) 12-34"}
    told = ok(alice.post("/api/v1/update-user-info", body))
    assert [told[name]["String"] for name in ("FirstName", "Surname", "PhoneNumber")] == [*body.values()]
    told = ok(alice.post("/api/v1/update-user-info", {"surname": "", "first_name": "Al"}))
    assert told["Surname"] == {"String": "", "Valid": False}
    assert (told["FirstName"]["String"], told["PhoneNumber"]["Valid"]) == ("Al", True)
    assert ok(alice.get("/api/v1/get-user-info")) == told
    refused(alice.post("/api/v1/update-user-info", {"phone_number": "=1+1"}), 422, "VALIDATION")


def test_the_default_is_one_of_ones_own(alice: As, world: World) -> None:
    second = second_workspace(alice)
    for _ in range(2):
        told = ok(alice.post("/api/v1/set-default-workspace", {"workspace_id": second}))
        assert told["DefaultWorkspace"] == second
        assert world.audit_actions().count("DEFAULT_WORKSPACE_CHANGED") == 1
    world.organisation("Umbrella", EVE)
    for theirs in (3, 999):
        answer = alice.post("/api/v1/set-default-workspace", {"workspace_id": theirs})
        refused(answer, 404, "NOT_FOUND")
