"""Workspaces through HTTP: founding them, and their names."""

import pytest

from custody.schemas.permissions import PermissionName as P
from custody.server.people import organisations
from multisig import Network
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import add_someone, admit, carried, roles

ALICE = "alice@example.org"


def create(user: As, **changes: object):
    body = {"workspace_id": 1, "org_id": 1, "name": "Second", "network": "testnet", **changes}
    return user.post("/api/v1/create-workspace", body)


def update(user: As, **changes: object):
    return user.post("/api/v1/update-workspace", {"workspace_id": 1, **changes})


class TestFounding:
    def test_the_founder_administers_it_from_the_first_moment(self, alice: As, world: World) -> None:
        founded = ok(create(alice, description="Where the second team works"))
        assert founded["WorkspaceInfo"] == {
            "uid": 2,
            "name": "Second",
            "description": "Where the second team works",
            "net": "testnet",
        }
        assert carried(founded["Role"]) == [
            "MANAGE_WORKSPACE", "PAYMENT_INIT", "PAYMENT_APPROVE", "VIEW_BALANCES", "MANAGE_ROLE",
            "MANAGE_USERS", "VIEW_LOGS",
        ]  # fmt: skip
        own = ok(alice.get("/api/v1/get-user-info"))
        assert own["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"][1] == founded
        assert own["DefaultWorkspace"] == 1
        assert sorted(roles(alice, 2)) == ["Administrator", "Signer"]
        assert world.audit_actions("workspace:2") == ["WORKSPACE_CREATED"]

    def test_a_name_is_one_workspaces(self, alice: As, eve: As) -> None:
        """Of the organisation's."""
        for name in ("Main", " Main "):
            refused(create(alice, name=name), 409, "STATE_CONFLICT")
        ok(create(eve, workspace_id=2, org_id=2, name="Second"))
        ok(create(alice))
        refused(update(alice, name="Second"), 409, "STATE_CONFLICT")

    def test_a_network_is_one_chain_on_the_whole_platform(self, alice: As, world: World) -> None:
        ok(create(alice, name="Real", network="mainnet"))
        with world.platform.services.store.read() as db:
            assert organisations.chain_for(db, "testnet") is Network.REGTEST
            assert organisations.chain_for(db, "mainnet") is Network.MAINNET
        refused(create(alice, name="Other", network="signet"), 422, "VALIDATION")

    def test_p26_its_administrator_gains_nothing_elsewhere_and_there_is_an_end_to_them(
        self, alice: As, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        founder = add_someone(world, "Founder", {P.MANAGE_WORKSPACE})
        ok(create(founder.calls))
        refused(admit(founder.calls, founder.user_id, 1, creator_workspace_id=2), 403, "PERMISSION_DENIED")
        monkeypatch.setattr(organisations, "MAX_WORKSPACES", 2)
        refused(create(alice, name="Third"), 409, "STATE_CONFLICT")

    def test_the_first_test_workspace_is_the_operators_to_found(self, world: World) -> None:
        world.organisation("Acme", ALICE, Network.MAINNET)
        answer = create(world.as_user(ALICE))
        assert "custody admin bootstrap" in refused(answer, 409, "STATE_CONFLICT")["detail"]


class TestNaming:
    def test_what_is_left_out_stays(self, alice: As, world: World) -> None:
        assert ok(update(alice, name="Treasury"))["description"] == ""
        assert ok(update(alice, description="All of it"))["name"] == "Treasury"
        assert world.audit_actions("workspace:1")[-2:] == ["WORKSPACE_UPDATED"] * 2

    def test_nothing_else_can_be_written(self, alice: As) -> None:
        for changes in ({"name": ""}, {"name": "a\nb"}, {"description": "a\x1bb"}, {"network": "mainnet"}):
            refused(update(alice, **changes), 422, "VALIDATION")
