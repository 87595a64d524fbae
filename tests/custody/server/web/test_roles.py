"""Roles through HTTP: reading, making, changing, deleting, what they carry, and what members may spend."""

import httpx
import pytest

from custody.schemas.call import PermissionName as P
from custody.server.errors import PolicyUnavailable
from custody.server.limits.stored import Policies
from custody.server.people import roles as service
from tests.support.accounts import CAROL, register, sign_in
from tests.support.custody import ok, refused
from tests.support.platform import As, World, plain_vault
from tests.support.staff import (
    Someone,
    add_role,
    add_someone,
    carried,
    change_role,
    invite,
    remove_permission,
    roles,
)

ADMINISTRATOR, SIGNER = 1, 2


def clerk(**changes: object) -> dict:
    limit = {"transaction_limit": "0.25", "cycle_period": "W", "cycle_day": 5}
    role = {"name": "Clerk", "description": "Prepares payments"}
    role["permissions"] = ["PAYMENT_INIT", "VIEW_BALANCES"]
    return {"workspace_id": 1, **role, **limit, **changes}


def update(user: As, role_id: int, **changes: object):
    return user.post("/api/v1/update-role", {"role_id": role_id, "workspace_id": 1, **changes})


def delete(user: As, role_id: int, workspace_id: int = 1):
    return user.post("/api/v1/delete-role", {"role_id": role_id, "workspace_id": workspace_id})


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


def test_there_is_an_end_to_roles(alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_ROLES", 2)
    refused(alice.post("/api/v1/create-role", clerk()), 409, "STATE_CONFLICT")


def set_limit(alice: As, role_id: int, limit: str, period: str = "M", day: int = 1) -> httpx.Response:
    body = {"role_id": role_id, "workspace_id": 1, "new_transaction_limit": limit, "cycle_period": period}
    return alice.post("/api/v1/update-role-policies", {**body, "cycle_day": day})


def set_vault_limit(alice: As, limit: str) -> httpx.Response:
    body = {"vault_id": "v1", "workspace_id": 1, "transaction_limit": limit, "cycle_period": "M"}
    return alice.post("/api/v1/update-vault", {**body, "cycle_day": 31})


def test_p19_p21_an_amount_is_checked_against_a_role_and_a_vault(alice: As, bob: As, world: World) -> None:
    """More than there is is no amount, at every door."""
    with world.platform.services.store.write() as db:
        db.add(plain_vault("v1"))

    def check(what: str, amount: str, **named: object) -> httpx.Response:
        query = {"workspace_id": 1, "amount_to_check": amount, **named}
        return alice.get(f"/api/v1/check-{what}-limit", **query)

    member, vault = {"role_id": 2, "uuid": 2}, {"vault_id": "v1"}
    ok(set_limit(alice, 2, "0.5"))
    ok(set_vault_limit(alice, "0.5"))
    for amount, fits in (("0.5", True), ("0.50000001", False), ("0", True)):
        assert ok(check("user-role", amount, **member)) == {"Success": fits}
        assert ok(check("vault", amount, **vault)) == {"Success": fits}
    problem = refused(check("user-role", "1", **member | {"role_id": 1}), 422, "VALIDATION")
    assert problem["errors"][0]["pointer"] == "/role_id", "the member holds another one"
    beyond = "21000000.00000001"
    role = {"workspace_id": 1, "name": "Clerk", "permissions": [], "cycle_period": "M", "cycle_day": 1}
    for answer in (
        check("user-role", beyond, **member),
        check("vault", beyond, **vault),
        set_limit(alice, 2, beyond),
        set_vault_limit(alice, beyond),
        alice.post("/api/v1/create-role", role | {"transaction_limit": beyond}),
    ):
        refused(answer, 422, "VALIDATION")
    assert ok(alice.get("/api/v1/get-role-limit", workspace_id=1, role_id=2))["Limit"] == "0.50000000"


SPENDER = (P.MANAGE_WORKSPACE, P.VIEW_BALANCES)


@pytest.fixture
def host(world: World, alice: As) -> Someone:
    """Manages users, and may move 1 BTC a month."""
    someone = add_someone(world, "Host", (P.MANAGE_USERS, *SPENDER))
    ok(set_limit(alice, someone.role_id, "1"))
    return someone


def test_p26_a_caller_who_sets_no_limits_gives_none_above_their_own(
    world: World, alice: As, host: Someone
) -> None:
    """To themselves by another role, or to a person they invite."""
    cases = (
        ("1.00000001", "M", 1, 403), ("1", "W", 1, 403), ("1", "M", 15, 403),
        ("1", "M", 1, 200), ("0", "W", 1, 200),
    )  # fmt: skip
    for number, (limit, period, day, status) in enumerate(cases):
        role = add_role(world, f"Spender {number}", (P.MANAGE_USERS, *SPENDER))
        ok(set_limit(alice, role, limit, period, day))
        invited = invite(host.calls, f"{number}@example.org", role)
        moved = change_role(host.calls, host.user_id, role)
        assert (invited.status_code, moved.status_code) == (status, status), (limit, period, day)
    # Who sets limits gives any.
    ok(change_role(alice, host.user_id, 1))
    ok(change_role(alice, host.user_id, host.role_id))
    reader = add_role(world, "Reader", (P.VIEW_BALANCES,))
    ok(set_limit(alice, reader, "21"))
    # It moves nothing, and has no limit to speak of.
    ok(change_role(host.calls, host.user_id, reader))


def test_p26_a_limit_that_rose_since_the_invitation_is_measured_again(
    world: World, alice: As, host: Someone
) -> None:
    role = add_role(world, "Spender", SPENDER)
    ok(set_limit(alice, role, "1"))
    invite_id = ok(invite(host.calls, CAROL, role))["invite_id"]
    ok(set_limit(alice, role, "2"))
    carol = sign_in(world, register(world)).user
    assert carol.get("/api/v1/accept-invite", invite_id=invite_id, accept="true").status_code == 409
    ok(set_limit(alice, role, "1"))
    ok(carol.get("/api/v1/accept-invite", invite_id=invite_id, accept="true"))
