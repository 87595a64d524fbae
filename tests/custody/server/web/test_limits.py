"""Spending limits over HTTP; and P26 for limits: a caller who grants roles but sets no limits grants none
above their own.
"""

import httpx
import pytest
from sqlalchemy import select

from custody.schemas.permissions import PermissionName as P
from custody.server.store.models import AuditEventRow
from tests.support.accounts import CAROL, register, sign_in
from tests.support.custody import ok, refused
from tests.support.platform import As, World, plain_vault
from tests.support.staff import Someone, add_role, add_someone, change_role

NOT_AMOUNTS = ("1e3", "NaN", "-1", "+1", "", " 1", "1 ", "1.", ".5", "01", "0x10", "1,0", "Infinity", "1.1_1",
               "１", "0." + "1" * 30, "0.123456789", "21000000.00000001", "99999999999999999999")  # fmt: skip
NOT_DAYS = (("W", 0), ("W", 8), ("M", 0), ("M", 32), ("M", -1), ("M", 1.5), ("M", "1"), ("D", 1), ("w", 1))


def role_policy(**changes: object) -> dict:
    named = {"role_id": 2, "workspace_id": 1, "new_transaction_limit": "0.5", "cycle_period": "W"}
    return named | {"cycle_day": 3} | changes


def vault_policy(**changes: object) -> dict:
    named = {"vault_id": "v1", "workspace_id": 1, "transaction_limit": "0.5", "cycle_period": "M"}
    return named | {"cycle_day": 31} | changes


@pytest.fixture
def vault(world: World, alice: As) -> str:
    return add_vault(world, "v1", 1)


def add_vault(world: World, vault_id: str, workspace_id: int) -> str:
    with world.platform.services.store.write() as db:
        db.add(plain_vault(vault_id, workspace_id))
    return vault_id


def last_event(world: World) -> AuditEventRow:
    query = (
        select(AuditEventRow)
        .where(AuditEventRow.chain_id == "workspace:1")
        .order_by(AuditEventRow.position.desc())
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

    def test_p19_an_amount_is_checked(self, alice: As, bob: As) -> None:
        ok(alice.post("/api/v1/update-role-policies", role_policy()))
        for amount, fits in (("0.5", True), ("0.50000001", False), ("0", True), ("21000000", False)):
            query = {"workspace_id": 1, "role_id": 2, "uuid": 2, "amount_to_check": amount}
            assert ok(alice.get("/api/v1/check-user-role-limit", **query)) == {"Success": fits}

    def test_a_check_names_the_role_that_the_member_holds(self, alice: As, bob: As) -> None:
        query = {"workspace_id": 1, "role_id": 1, "uuid": 2, "amount_to_check": "1"}
        problem = refused(alice.get("/api/v1/check-user-role-limit", **query), 422, "VALIDATION")
        assert problem["errors"][0]["pointer"] == "/role_id"

    def test_p21_what_is_no_amount(self, alice: As, vault: str) -> None:
        for amount in NOT_AMOUNTS:
            body = role_policy(new_transaction_limit=amount)
            problem = refused(alice.post("/api/v1/update-role-policies", body), 422, "VALIDATION")
            assert problem["errors"][0]["pointer"] == "/new_transaction_limit", amount
            body = vault_policy(transaction_limit=amount)
            problem = refused(alice.post("/api/v1/update-vault", body), 422, "VALIDATION")
            assert problem["errors"][0]["pointer"] == "/transaction_limit", amount
            query = {"workspace_id": 1, "amount_to_check": amount}
            role = alice.get("/api/v1/check-user-role-limit", role_id=1, uuid=1, **query)
            refused(role, 422, "VALIDATION")
            refused(alice.get("/api/v1/check-vault-limit", vault_id=vault, **query), 422, "VALIDATION")
        assert ok(alice.get("/api/v1/get-role-limit", workspace_id=1, role_id=2))["Limit"] == "0.00000000"

    def test_p21_a_number_is_no_decimal_string(self, alice: As) -> None:
        for number in (1, 0.5, None, True):
            body = role_policy(new_transaction_limit=number)
            refused(alice.post("/api/v1/update-role-policies", body), 422, "VALIDATION")

    def test_days_that_a_cycle_does_not_have(self, alice: As, vault: str) -> None:
        for period, day in NOT_DAYS:
            cycle = {"cycle_period": period, "cycle_day": day}
            for path, body in (
                ("/api/v1/update-role-policies", role_policy(**cycle)),
                ("/api/v1/update-vault", vault_policy(**cycle)),
            ):
                problem = refused(alice.post(path, body), 422, "VALIDATION")
                assert problem["errors"][0]["pointer"] in {"/cycle_day", "/cycle_period"}


class TestVaults:
    def test_a_policy_is_replaced_read_back_and_recorded(self, alice: As, vault: str, world: World) -> None:
        answer = ok(alice.post("/api/v1/update-vault", vault_policy()))
        assert answer == {
            "Limit": "0.50000000", "CyclePeriod": "M", "CycleDay": 31, "Used": "0.00000000",
            "Unused": "0.50000000", "NextReset": "2026-03-31T00:00:00.000Z", "PerCycle": False,
        }  # fmt: skip
        assert ok(alice.get("/api/v1/get-vault-limits", workspace_id=1, vault_id=vault)) == answer
        event = last_event(world)
        assert (event.category, event.action, event.user_uuid) == ("VAULTS", "VAULT_POLICY_REPLACED", 1)
        assert event.description == (
            "vault v1: 0.00000000 BTC a movement, W from day 1; now 0.50000000 BTC a movement, M from day 31"
        )

    def test_p19_an_amount_is_checked(self, alice: As, vault: str) -> None:
        ok(alice.post("/api/v1/update-vault", vault_policy()))
        for amount, fits in (("0.5", True), ("0.50000001", False)):
            query = {"workspace_id": 1, "vault_id": vault, "amount_to_check": amount}
            assert ok(alice.get("/api/v1/check-vault-limit", **query)) == {"Success": fits}


SPENDER = (P.MANAGE_WORKSPACE, P.VIEW_BALANCES)


def set_limit(alice: As, role_id: int, limit: str, period: str = "M") -> None:
    body = role_policy(role_id=role_id, new_transaction_limit=limit, cycle_period=period, cycle_day=1)
    ok(alice.post("/api/v1/update-role-policies", body))


@pytest.fixture
def host(world: World, alice: As) -> Someone:
    """Manages users, and may move 1 BTC a month."""
    someone = add_someone(world, "Host", (P.MANAGE_USERS, *SPENDER))
    set_limit(alice, someone.role_id, "1")
    return someone


@pytest.fixture
def role(world: World, alice: As, request: pytest.FixtureRequest) -> int:
    limit, period = request.param
    role_id = add_role(world, "Spender", SPENDER)
    set_limit(alice, role_id, limit, period)
    return role_id


def invite(user: As, role_id: int) -> httpx.Response:
    body = {"invited_email": CAROL, "workspace_context": 1, "org_id": 1, "role_id": role_id}
    return user.post("/api/v1/invite-to-workspace", body)


higher = pytest.mark.parametrize(
    "role", [("1.00000001", "M"), ("1", "W")], ids=["more", "as much, but weekly"], indirect=True
)
within = pytest.mark.parametrize("role", [("1", "M"), ("0", "W")], ids=["as much", "nothing"], indirect=True)


@higher
def test_p26_a_caller_does_not_raise_their_own_limit_by_changing_their_role(host: Someone, role: int) -> None:
    told = refused(change_role(host.calls, host.user_id, role), 403, "PERMISSION_DENIED")
    assert "MANAGE_ROLE" in told["detail"]
    assert ok(host.calls.get("/api/v1/get-my-limits", workspace_id=1))["Limit"] == "1.00000000"


@higher
def test_p26_nor_that_of_a_person_they_invite(host: Someone, role: int) -> None:
    refused(invite(host.calls, role), 403, "PERMISSION_DENIED")


@within
def test_a_limit_that_is_no_higher_is_given(host: Someone, role: int) -> None:
    ok(invite(host.calls, role))
    ok(change_role(host.calls, host.user_id, role))


@higher
def test_a_caller_who_sets_limits_gives_any(alice: As, host: Someone, role: int) -> None:
    ok(change_role(alice, host.user_id, role))


@pytest.mark.parametrize("role", [("1", "M")], indirect=True)
def test_p26_a_limit_that_rose_since_the_invitation_is_measured_again(
    world: World, alice: As, host: Someone, role: int
) -> None:
    invite_id = ok(invite(host.calls, role))["invite_id"]
    set_limit(alice, role, "2")
    carol = sign_in(world, register(world)).user
    assert carol.get("/api/v1/accept-invite", invite_id=invite_id, accept="true").status_code == 409
    set_limit(alice, role, "1")
    ok(carol.get("/api/v1/accept-invite", invite_id=invite_id, accept="true"))


def test_a_role_that_moves_nothing_has_no_limit_to_speak_of(world: World, alice: As, host: Someone) -> None:
    reader = add_role(world, "Reader", (P.VIEW_BALANCES,))
    set_limit(alice, reader, "21")
    ok(change_role(host.calls, host.user_id, reader, force=True))
