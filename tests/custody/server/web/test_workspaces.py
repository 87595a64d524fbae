"""Workspaces through HTTP: founding them, and their names."""

import pytest

from custody.schemas.users import PermissionName as P
from custody.server.service.people import workspaces
from multisig import Network
from tests.support.custody import ok, refused
from tests.support.platform import PASSWORD, As, World
from tests.support.staff import add_someone, carried, roles

ALICE, EVE = "alice@example.org", "eve@example.com"


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
            "MANAGE_WORKSPACE",
            "PAYMENT_INIT",
            "PAYMENT_APPROVE",
            "VIEW_BALANCES",
            "MANAGE_ROLE",
            "MANAGE_USERS",
            "VIEW_LOGS",
        ]
        own = ok(alice.get("/api/v1/get-user-info"))
        assert own["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"][1] == founded
        assert own["DefaultWorkspace"] == 1
        assert sorted(roles(alice, 2)) == ["Administrator", "Signer"]
        assert world.audit_actions("workspace:2") == ["WORKSPACE_CREATED"]

    def test_nobody_else_of_the_organisation_is_in_it(self, alice: As, world: World) -> None:
        other = add_someone(world, "Other", set(P))
        ok(create(alice))
        answer = other.calls.get("/api/v1/get-users-from-workspace", workspace_id=2)
        refused(answer, 403, "PERMISSION_DENIED")

    def test_p26_administering_the_new_one_gives_nothing_in_the_old_one(
        self, alice: As, world: World
    ) -> None:
        founder = add_someone(world, "Founder", {P.MANAGE_WORKSPACE})
        ok(create(founder.calls))
        addition = {
            "workspace_id": 1,
            "user_uuid": founder.user_id,
            "role_uid": 1,
            "creator_workspace_id": 2,
            "creator_org_uuid": 1,
        }
        refused(founder.calls.post("/api/v1/add-workspace-to-user", addition), 403, "PERMISSION_DENIED")
        refused(
            founder.calls.get("/api/v1/get-users-from-workspace", workspace_id=1), 403, "PERMISSION_DENIED"
        )

    def test_p24_is_for_ones_own_organisation(self, alice: As, world: World) -> None:
        world.organisation("Umbrella", EVE)
        for org_id in (2, 999):
            refused(create(alice, org_id=org_id), 404, "NOT_FOUND")
        refused(create(alice, workspace_id=2, org_id=2), 404, "NOT_FOUND")

    @pytest.mark.parametrize("name", ["Main", " Main "])
    def test_a_name_is_one_workspaces(self, alice: As, world: World, name: str) -> None:
        refused(create(alice, name=name), 409, "STATE_CONFLICT")
        world.organisation("Umbrella", EVE)
        ok(create(world.as_user(EVE), workspace_id=2, org_id=2, name="Second"))
        ok(create(alice))

    def test_a_network_is_one_chain_on_the_whole_platform(self, alice: As, world: World) -> None:
        ok(create(alice, name="Real", network="mainnet"))
        with world.platform.services.store.read() as db:
            assert workspaces.chain_for(db, "testnet") is Network.REGTEST
            assert workspaces.chain_for(db, "mainnet") is Network.MAINNET
        refused(create(alice, name="Other", network="signet"), 422, "VALIDATION")

    def test_the_first_test_workspace_is_the_operators_to_found(self, world: World) -> None:
        from custody.server.service.people.setup import NewPerson

        world.platform.setup.bootstrap(
            organisation="Acme",
            workspace="Main",
            chain=Network.MAINNET,
            person=NewPerson(ALICE, PASSWORD, two_factor=False),
        )
        answer = create(world.as_user(ALICE))
        assert "custody admin bootstrap" in refused(answer, 409, "STATE_CONFLICT")["detail"]

    def test_a_repeated_request_founds_one(self, alice: As) -> None:
        body = {"workspace_id": 1, "org_id": 1, "name": "Second", "network": "testnet"}
        answers = [ok(alice.post("/api/v1/create-workspace", body, **{"Idempotency-Key": "k"})) for _ in "12"]
        assert answers[0] == answers[1]

    def test_there_is_an_end_to_them(self, alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(workspaces, "MAX_WORKSPACES", 2)
        ok(create(alice))
        refused(create(alice, name="Third"), 409, "STATE_CONFLICT")


class TestNaming:
    def test_what_is_left_out_stays(self, alice: As, world: World) -> None:
        assert ok(update(alice, name="Treasury"))["description"] == ""
        assert ok(update(alice, description="All of it"))["name"] == "Treasury"
        assert world.audit_actions("workspace:1")[-2:] == ["WORKSPACE_UPDATED"] * 2

    def test_what_is_so_already_is_not_recorded(self, alice: As, world: World) -> None:
        before = world.audit_actions("workspace:1")
        ok(update(alice, name="Main", description=""))
        assert world.audit_actions("workspace:1") == before

    def test_a_name_is_one_workspaces(self, alice: As) -> None:
        ok(create(alice))
        refused(update(alice, name="Second"), 409, "STATE_CONFLICT")

    @pytest.mark.parametrize(
        "changes", [{"name": ""}, {"name": "a\nb"}, {"description": "a\x1bb"}, {"network": "mainnet"}]
    )
    def test_nothing_else_can_be_written(self, alice: As, changes: dict) -> None:
        refused(update(alice, **changes), 422, "VALIDATION")
