"""Workspaces through HTTP: founding them, and their names."""

import pytest

from custody.schemas.call import PermissionName as P
from custody.server.people import organisations
from multisig import Network
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import add_someone, admit, carried, roles
from tests.support.staff import create_workspace as create

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
