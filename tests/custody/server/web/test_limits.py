"""The limits' calls: their shapes, who may make them, and that no other tenant's role or vault is there (P21, P24)."""

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.users import PermissionName
from custody.server.store.models import AuditEvent, Role, RolePermission, Workspace
from tests.support.custody import ok, refused
from tests.support.platform import START, As, World, plain_vault

BOB = "bob@example.org"
NOT_AMOUNTS = ("1e3", "NaN", "-1", "+1", "", " 1", "1 ", "1.", ".5", "01", "0x10", "1,0", "Infinity", "1.1_1", "１",
               "0." + "1" * 30, "0.123456789", "21000000.00000001", "99999999999999999999")  # fmt: skip
NOT_DAYS = (("W", 0), ("W", 8), ("M", 0), ("M", 32), ("M", -1), ("M", 1.5), ("M", "1"), ("D", 1), ("w", 1))


def role_policy(**changes: object) -> dict:
    named = {
        "role_id": 2,
        "workspace_id": 1,
        "new_transaction_limit": "0.5",
        "cycle_period": "W",
        "cycle_day": 3,
    }
    return named | changes


def vault_policy(**changes: object) -> dict:
    named = {
        "vault_id": "v1",
        "workspace_id": 1,
        "transaction_limit": "0.5",
        "cycle_period": "M",
        "cycle_day": 31,
    }
    return named | changes


@pytest.fixture
def vault(world: World, alice: As) -> str:
    return add_vault(world, "v1", 1)


def add_vault(world: World, vault_id: str, workspace_id: int) -> str:
    with world.platform.services.store.write() as db:
        db.add(plain_vault(vault_id, workspace_id))
    return vault_id


def add_role(db: Session, workspace_id: int, name: str, permission: PermissionName) -> None:
    role = Role(
        workspace_id=workspace_id,
        name=name,
        description="",
        limit_sats=0,
        cycle_period="M",
        cycle_day=1,
        created_at=START,
        updated_at=START,
    )
    db.add(role)
    db.flush()
    db.add(RolePermission(role_id=role.id, permission=permission.value))


def second_workspace(world: World, role: str, permission: PermissionName) -> int:
    """Another workspace of organisation 1, with one role."""
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
        add_role(db, place.id, role, permission)
        return place.id


def last_event(world: World) -> AuditEvent:
    query = (
        select(AuditEvent).where(AuditEvent.chain_id == "workspace:1").order_by(AuditEvent.position.desc())
    )
    with world.platform.services.store.read() as db:
        return db.scalars(query).first()


class TestRoles:
    def test_a_policy_is_replaced_read_back_and_recorded(self, alice: As, world: World) -> None:
        answer = ok(alice.post("/api/v1/update-role-policies", role_policy()))
        assert answer == {
            "role_id": 2, "workspace_id": 1, "Limit": "0.50000000", "CyclePeriod": "W", "CycleDay": 3,
            "NextReset": "2026-03-04T00:00:00.000Z",
        }  # fmt: skip
        assert ok(alice.get("/api/v1/get-role-limit", workspace_id=1, role_id=2)) == answer
        event = last_event(world)
        assert (event.category, event.action, event.user_uuid) == ("PEOPLE", "ROLE_POLICY_REPLACED", 1)
        assert event.description == (
            "role 2: 0.00000000 BTC a cycle, M from day 1; now 0.50000000 BTC a cycle, W from day 3"
        )

    def test_permissions_stay(self, alice: As, bob: As) -> None:
        before = ok(bob.get("/api/v1/get-user-info"))
        ok(alice.post("/api/v1/update-role-policies", role_policy()))
        assert ok(bob.get("/api/v1/get-user-info"))["OrganisationsInfo"] == before["OrganisationsInfo"]

    def test_the_bootstrapped_roles(self, alice: As) -> None:
        limits = [
            ok(alice.get("/api/v1/get-role-limit", workspace_id=1, role_id=role))["Limit"] for role in (1, 2)
        ]
        assert limits == ["21000000.00000000", "0.00000000"]

    def test_any_member_sees_their_own(self, alice: As, bob: As) -> None:
        ok(alice.post("/api/v1/update-role-policies", role_policy()))
        assert ok(bob.get("/api/v1/get-my-limits", workspace_id=1)) == {
            "role_id": 2, "workspace_id": 1, "Limit": "0.50000000", "CyclePeriod": "W", "CycleDay": 3,
            "NextReset": "2026-03-04T00:00:00.000Z", "Used": "0.00000000", "Unused": "0.50000000",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("amount", "fits"), [("0.5", True), ("0.50000001", False), ("0", True), ("21000000", False)]
    )
    def test_p19_an_amount_is_checked(self, alice: As, bob: As, amount: str, fits: bool) -> None:
        ok(alice.post("/api/v1/update-role-policies", role_policy()))
        query = {"workspace_id": 1, "role_id": 2, "uuid": 2, "amount_to_check": amount}
        assert ok(alice.get("/api/v1/check-user-role-limit", **query)) == {"Success": fits}

    def test_a_check_names_the_role_that_the_member_holds(self, alice: As, bob: As) -> None:
        query = {"workspace_id": 1, "role_id": 1, "uuid": 2, "amount_to_check": "1"}
        problem = refused(alice.get("/api/v1/check-user-role-limit", **query), 422, "VALIDATION")
        assert problem["errors"][0]["pointer"] == "/role_id"

    def test_need_the_permission(self, alice: As, bob: As) -> None:
        for answer in (
            bob.post("/api/v1/update-role-policies", role_policy()),
            bob.get("/api/v1/get-role-limit", workspace_id=1, role_id=2),
            bob.get("/api/v1/check-user-role-limit", workspace_id=1, role_id=2, uuid=2, amount_to_check="1"),
        ):
            assert "MANAGE_ROLE" in refused(answer, 403, "PERMISSION_DENIED")["detail"]

    def test_p25_a_permission_held_elsewhere_is_none_here(self, alice: As, bob: As, world: World) -> None:
        other = second_workspace(world, "Managers", PermissionName.MANAGE_ROLE)
        world.member(other, BOB, "Managers")
        ok(bob.get("/api/v1/get-role-limit", workspace_id=other, role_id=3))
        refused(bob.post("/api/v1/update-role-policies", role_policy()), 403, "PERMISSION_DENIED")

    @pytest.mark.parametrize("role_id", [3, 999])
    def test_p24_a_role_of_another_workspace_is_not_there(self, alice: As, eve: As, role_id: int) -> None:
        """3 and 4 are Eve's."""
        check = {"role_id": role_id, "uuid": 3, "amount_to_check": "1"}
        for answer in (
            alice.post("/api/v1/update-role-policies", role_policy(role_id=role_id)),
            alice.get("/api/v1/get-role-limit", workspace_id=1, role_id=role_id),
            alice.get("/api/v1/check-user-role-limit", workspace_id=1, **check),
            alice.post("/api/v1/update-role-policies", role_policy(role_id=role_id, workspace_id=2)),
        ):
            refused(answer, 404, "NOT_FOUND")
        assert (
            ok(eve.get("/api/v1/get-role-limit", workspace_id=2, role_id=3))["Limit"] == "21000000.00000000"
        )

    @pytest.mark.parametrize("uuid", [2, 999])
    def test_p24_nobody_elses_member_is_checked(self, alice: As, eve: As, uuid: int) -> None:
        query = {"workspace_id": 1, "role_id": 1, "uuid": uuid, "amount_to_check": "1"}
        refused(alice.get("/api/v1/check-user-role-limit", **query), 404, "NOT_FOUND")

    @pytest.mark.parametrize("amount", NOT_AMOUNTS)
    def test_p21_what_is_no_amount(self, alice: As, amount: str) -> None:
        body = role_policy(new_transaction_limit=amount)
        problem = refused(alice.post("/api/v1/update-role-policies", body), 422, "VALIDATION")
        assert problem["errors"][0]["pointer"] == "/new_transaction_limit"
        query = {"workspace_id": 1, "role_id": 1, "uuid": 1, "amount_to_check": amount}
        refused(alice.get("/api/v1/check-user-role-limit", **query), 422, "VALIDATION")
        assert ok(alice.get("/api/v1/get-role-limit", workspace_id=1, role_id=2))["Limit"] == "0.00000000"

    @pytest.mark.parametrize("number", [1, 0.5, None, True])
    def test_p21_a_number_is_no_decimal_string(self, alice: As, number: object) -> None:
        body = role_policy(new_transaction_limit=number)
        refused(alice.post("/api/v1/update-role-policies", body), 422, "VALIDATION")

    @pytest.mark.parametrize(("period", "day"), NOT_DAYS)
    def test_days_that_a_cycle_does_not_have(self, alice: As, vault: str, period: str, day: object) -> None:
        cycle = {"cycle_period": period, "cycle_day": day}
        for path, body in (
            ("/api/v1/update-role-policies", role_policy(**cycle)),
            ("/api/v1/update-vault", vault_policy(**cycle)),
        ):
            problem = refused(alice.post(path, body), 422, "VALIDATION")
            assert problem["errors"][0]["pointer"] in {"/cycle_day", "/cycle_period"}

    @pytest.mark.parametrize("field", sorted(role_policy()))
    def test_every_field_is_required(self, alice: As, field: str) -> None:
        body = {name: value for name, value in role_policy().items() if name != field}
        refused(alice.post("/api/v1/update-role-policies", body), 422, "VALIDATION")


class TestVaults:
    def test_a_policy_is_replaced_read_back_and_recorded(self, alice: As, vault: str, world: World) -> None:
        answer = ok(alice.post("/api/v1/update-vault", vault_policy()))
        assert answer == {
            "Limit": "0.50000000", "CyclePeriod": "M", "CycleDay": 31, "Used": "0.00000000", "Unused": "0.50000000",
            "NextReset": "2026-03-31T00:00:00.000Z", "PerCycle": False,
        }  # fmt: skip
        assert ok(alice.get("/api/v1/get-vault-limits", workspace_id=1, vault_id=vault)) == answer
        event = last_event(world)
        assert (event.category, event.action, event.user_uuid) == ("VAULTS", "VAULT_POLICY_REPLACED", 1)
        assert event.description == (
            "vault v1: 0.00000000 BTC a movement, W from day 1; now 0.50000000 BTC a movement, M from day 31"
        )

    @pytest.mark.parametrize(("amount", "fits"), [("0.5", True), ("0.50000001", False)])
    def test_p19_an_amount_is_checked(self, alice: As, vault: str, amount: str, fits: bool) -> None:
        ok(alice.post("/api/v1/update-vault", vault_policy()))
        query = {"workspace_id": 1, "vault_id": vault, "amount_to_check": amount}
        assert ok(alice.get("/api/v1/check-vault-limit", **query)) == {"Success": fits}

    def test_readers_read_and_do_not_write(self, alice: As, bob: As, vault: str) -> None:
        ok(bob.get("/api/v1/get-vault-limits", workspace_id=1, vault_id=vault))
        ok(bob.get("/api/v1/check-vault-limit", workspace_id=1, vault_id=vault, amount_to_check="1"))
        refused(bob.post("/api/v1/update-vault", vault_policy()), 403, "PERMISSION_DENIED")

    def test_a_member_without_a_reading_permission(self, alice: As, vault: str, world: World) -> None:
        with world.platform.services.store.write() as db:
            add_role(db, 1, "Auditor", PermissionName.VIEW_LOGS)
        world.member(1, "dora@example.org", "Auditor")
        dora = world.as_user("dora@example.org")
        refused(
            dora.get("/api/v1/get-vault-limits", workspace_id=1, vault_id=vault), 403, "PERMISSION_DENIED"
        )
        query = {"workspace_id": 1, "vault_id": vault, "amount_to_check": "1"}
        refused(dora.get("/api/v1/check-vault-limit", **query), 403, "PERMISSION_DENIED")
        ok(dora.get("/api/v1/get-my-limits", workspace_id=1))

    @pytest.mark.parametrize("vault_id", ["theirs", "nobodys"])
    def test_p24_a_vault_of_another_workspace_is_not_there(
        self, alice: As, eve: As, world: World, vault_id: str
    ) -> None:
        add_vault(world, "theirs", 2)
        for answer in (
            alice.post("/api/v1/update-vault", vault_policy(vault_id=vault_id)),
            alice.get("/api/v1/get-vault-limits", workspace_id=1, vault_id=vault_id),
            alice.get("/api/v1/check-vault-limit", workspace_id=1, vault_id=vault_id, amount_to_check="1"),
            alice.get("/api/v1/get-vault-limits", workspace_id=2, vault_id=vault_id),
        ):
            refused(answer, 404, "NOT_FOUND")

    @pytest.mark.parametrize("amount", NOT_AMOUNTS)
    def test_p21_what_is_no_amount(self, alice: As, vault: str, amount: str) -> None:
        body = vault_policy(transaction_limit=amount)
        problem = refused(alice.post("/api/v1/update-vault", body), 422, "VALIDATION")
        assert problem["errors"][0]["pointer"] == "/transaction_limit"
        query = {"workspace_id": 1, "vault_id": vault, "amount_to_check": amount}
        refused(alice.get("/api/v1/check-vault-limit", **query), 422, "VALIDATION")

    @pytest.mark.parametrize("field", sorted(vault_policy()))
    def test_every_field_is_required(self, alice: As, vault: str, field: str) -> None:
        body = {name: value for name, value in vault_policy().items() if name != field}
        refused(alice.post("/api/v1/update-vault", body), 422, "VALIDATION")
