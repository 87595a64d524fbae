"""Spending limits over HTTP; and P26 for limits: a caller who grants roles but sets no limits grants none
above their own.
"""

import httpx
import pytest

from custody.schemas.call import PermissionName as P
from tests.support.accounts import CAROL, register, sign_in
from tests.support.custody import ok, refused
from tests.support.platform import As, World, plain_vault
from tests.support.staff import Someone, add_role, add_someone, change_role, invite


def set_limit(alice: As, role_id: int, limit: str, period: str = "M") -> httpx.Response:
    body = {"role_id": role_id, "workspace_id": 1, "new_transaction_limit": limit, "cycle_period": period}
    return alice.post("/api/v1/update-role-policies", {**body, "cycle_day": 1})


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
    cases = (("1.00000001", "M", 403), ("1", "W", 403), ("1", "M", 200), ("0", "W", 200))
    for number, (limit, period, status) in enumerate(cases):
        role = add_role(world, f"Spender {number}", (P.MANAGE_USERS, *SPENDER))
        ok(set_limit(alice, role, limit, period))
        invited = invite(host.calls, f"{number}@example.org", role)
        moved = change_role(host.calls, host.user_id, role)
        assert (invited.status_code, moved.status_code) == (status, status), (limit, period)
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
