"""P26 for limits: whoever may give roles, and may not set limits, gives none that is higher than their own."""

import httpx
import pytest

from custody.schemas.users import PermissionName as P
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.staff import Someone, add_role, add_someone, change_role

CAROL = "carol@example.org"
SPENDER = (P.MANAGE_WORKSPACE, P.VIEW_BALANCES)


def set_limit(alice: As, role_id: int, limit: str, period: str = "M") -> None:
    body = {
        "role_id": role_id,
        "workspace_id": 1,
        "new_transaction_limit": limit,
        "cycle_period": period,
        "cycle_day": 1,
    }
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
def test_p26_nobody_raises_their_own_limit_by_changing_their_role(host: Someone, role: int) -> None:
    told = refused(change_role(host.calls, host.user_id, role), 403, "PERMISSION_DENIED")
    assert "MANAGE_ROLE" in told["detail"]
    assert ok(host.calls.get("/api/v1/get-my-limits", workspace_id=1))["Limit"] == "1.00000000"


@higher
def test_p26_nor_that_of_somebody_they_invite(host: Someone, role: int) -> None:
    refused(invite(host.calls, role), 403, "PERMISSION_DENIED")


@within
def test_a_limit_that_is_no_higher_is_given(host: Someone, role: int) -> None:
    ok(invite(host.calls, role))
    ok(change_role(host.calls, host.user_id, role))


@higher
def test_whoever_sets_limits_gives_any(alice: As, host: Someone, role: int) -> None:
    ok(change_role(alice, host.user_id, role))


@pytest.mark.parametrize("role", [("1", "M")], indirect=True)
def test_p26_a_limit_that_rose_since_the_invitation_is_measured_again(
    world: World, alice: As, host: Someone, role: int
) -> None:
    invite_id = ok(invite(host.calls, role))["invite_id"]
    set_limit(alice, role, "2")
    world.http.post("/auth/register", json={"email": CAROL, "password": "a long enough phrase"})
    waiting = ok(world.login(CAROL, "a long enough phrase"))
    code = {"token_2fa": waiting["token_2fa"], "otp": world.mail.newest_code()}
    token = ok(world.http.post("/auth/otp-validate", json=code))["token"]
    carol = As(world.http, {"Authorization": f"Bearer {token}"})
    answer = carol.get("/api/v1/accept-invite", invite_id=invite_id, accept="true")
    assert answer.status_code == 409
    set_limit(alice, role, "1")
    ok(carol.get("/api/v1/accept-invite", invite_id=invite_id, accept="true"))


def test_a_role_that_moves_nothing_has_no_limit_to_speak_of(world: World, alice: As, host: Someone) -> None:
    reader = add_role(world, "Reader", (P.VIEW_BALANCES,))
    set_limit(alice, reader, "21")
    ok(change_role(host.calls, host.user_id, reader, force=True))
