"""Members and workspaces over HTTP: listed, added, given another role, removed, left; and the caller's own
record; workspaces.
"""

import pytest

from custody.schemas.call import PermissionName as P
from custody.server.people import organisations
from multisig import Network
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import (
    Someone,
    add_role,
    add_someone,
    admit,
    carried,
    change_role,
    create_workspace,
    invite,
    remove,
    roles,
)
from tests.support.staff import create_workspace as create

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


ALICE = "alice@example.org"


def update(user: As, **changes: object):
    return user.post("/api/v1/update-workspace", {"workspace_id": 1, **changes})


def test_the_founder_administers_it_from_the_first_moment(alice: As, eve: As, world: World) -> None:
    """A name is one workspace's of the organisation; what is left out of a change stays."""
    founded = ok(create(alice, description="Where the second team works"))
    own = ok(alice.get("/api/v1/get-user-info"))
    assert own["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"][1] == founded
    assert own["DefaultWorkspace"] == 1
    first, own = ({name: carried(role) for name, role in roles(alice, number).items()} for number in (1, 3))
    assert first == own
    for name in ("Main", " Main "):
        refused(create(alice, name=name), 409, "STATE_CONFLICT")
    ok(create(eve, workspace_id=2, org_id=2, name="Second"))
    refused(update(alice, name="Second"), 409, "STATE_CONFLICT")
    assert ok(update(alice, name="Treasury"))["description"] == ""
    assert ok(update(alice, description="All of it"))["name"] == "Treasury"
    assert world.audit_actions("workspace:1")[-2:] == ["WORKSPACE_UPDATED"] * 2
    logs = ok(alice.get("/api/v1/get-logs", org_uid=1, workspace_uid=1))["logs"]
    assert "renamed the workspace Main to Treasury" in [entry["description"] for entry in logs]


def test_a_network_is_one_chain_on_the_whole_platform(alice: As, world: World) -> None:
    ok(create(alice, name="Real", network="mainnet"))
    with world.platform.services.store.read() as db:
        assert organisations.chain_for(db, "testnet") is Network.REGTEST
        assert organisations.chain_for(db, "mainnet") is Network.MAINNET
    refused(create(alice, name="Other", network="signet"), 422, "VALIDATION")


def test_p26_its_administrator_gains_nothing_elsewhere_and_there_is_an_end_to_them(
    alice: As, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    founder = add_someone(world, "Founder", {P.MANAGE_WORKSPACE})
    ok(create(founder.calls))
    refused(admit(founder.calls, founder.user_id, 1, creator_workspace_id=2), 403, "PERMISSION_DENIED")
    monkeypatch.setattr(organisations, "MAX_WORKSPACES", 2)
    refused(create(alice, name="Third"), 409, "STATE_CONFLICT")


def test_the_first_test_workspace_is_the_operators_to_found(world: World) -> None:
    world.organisation("Acme", ALICE, Network.MAINNET)
    answer = create(world.as_user(ALICE))
    assert "custody admin bootstrap" in refused(answer, 409, "STATE_CONFLICT")["detail"]
