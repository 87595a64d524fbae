"""P107: where an account has a second factor, no door opens a session, or keeps one open, without it.

The table is of every door that takes no session, of the API and of the console: a new one fails until it is
in it. What it brings is right in all but the second factor.
"""

from collections.abc import Callable, Iterator, Mapping

import pytest

from custody.schemas.auth import REFRESH_COOKIE
from custody.schemas.call import Auth
from custody.schemas.calls import CALLS
from custody.server.console.application import ROOT, ROWS
from custody.server.sign_in.identity_providers import CALLBACK
from custody.server.store.models import OtpChallengeRow, SignInSessionRow
from tests.custody.server.console.test_passkeys import HOME, URL, options, with_passkey
from tests.support.accounts import Session, enrol, mailed_token, request_reset, reset, sign_in, validate
from tests.support.authenticator import Authenticator
from tests.support.console import SAME_SITE
from tests.support.custody import ok, refused
from tests.support.platform import PASSWORD, World, open_world

OWNER = "admin@example.org"
WRONG = "000000"


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, public_url=URL) as world:
        world.organisation("Acme", OWNER)
        yield world


def mailed(own: Session) -> None:
    ok(own.user.post("/auth/two-factor", {"password": PASSWORD, "method": "email"}))


def with_a_passkey(own: Session) -> None:
    with_passkey(own.world, Authenticator(URL, "localhost"), OWNER)


FACTORS: Mapping[str, Callable[[Session], object]] = {
    "mailed codes": mailed,
    "an authenticator": enrol,
    "a passkey": with_a_passkey,
}


def at_console(world: World, path: str, **fields: str) -> None:
    world.http.post(f"{ROOT}{path}", data=fields, headers=SAME_SITE)


def code_awaited(world: World) -> str:
    return world.login(OWNER).json()["token_2fa"]


def reset_token(world: World) -> str:
    request_reset(world, OWNER)
    return mailed_token(world)


def recover(world: World) -> None:
    """The mailed password, and then that password alone."""
    ok(reset(world, reset_token(world), PASSWORD))
    assert world.login(OWNER).json()["requires_2FA"]


# What opens no session for who has the first factor alone.
DOORS: Mapping[str, Callable[[World], object]] = {
    "POST /auth/login": lambda world: world.login(OWNER),
    "POST /auth/otp-validate": lambda world: validate(world, code_awaited(world), WRONG),
    "POST /auth/register": lambda world: world.http.post(
        "/auth/register", json={"email": OWNER, "password": PASSWORD}
    ),
    "POST /auth/request-password-reset": lambda world: request_reset(world, OWNER),
    "POST /auth/reset-password": recover,
    "POST /console/sign-in": lambda world: at_console(world, "/sign-in", email=OWNER, password=PASSWORD),
    "POST /console/sign-in/code": lambda world: at_console(
        world, "/sign-in/code", token=code_awaited(world), otp=WRONG, method="email"
    ),
    "POST /console/register": lambda world: at_console(world, "/register", email=OWNER, password=PASSWORD),
    "POST /console/forgotten-password": lambda world: at_console(world, "/forgotten-password", email=OWNER),
    "POST /console/reset-password": lambda world: at_console(
        world, "/reset-password", token=reset_token(world), new_password=PASSWORD
    ),
}
# A purchase's webhook carries nobody. A renewal opens no session (below). An identity provider's session is
# the console's alone, where the factor comes before each change (`test_identity`, P73).
OTHERS = {
    "POST /auth/refresh", "POST /webhooks/purchases", "POST /console/sign-in/organisation",
    f"GET {CALLBACK}/{{organisation_id:int}}",
}  # fmt: skip
PAGES = {
    f"GET {ROOT}/{page}" for page in ("sign-in", "register", "forgotten-password", "reset-password")
}  # fmt: skip


def test_p107_the_table_has_every_door():
    doors = {f"{each.method} {each.path}" for each in CALLS if each.needs is Auth.OPEN}
    doors |= {f"{row.method} {ROOT}{row.path}" for row in ROWS if row.is_open}
    assert doors == DOORS.keys() | OTHERS | PAGES


def live_sessions(world: World) -> set[int]:
    with world.platform.services.store.read() as db:
        return {each.id for each in db.query(SignInSessionRow).filter(SignInSessionRow.revoked_at.is_(None))}


@pytest.mark.parametrize("factor", FACTORS)
def test_p107_the_first_factor_alone_opens_nothing(world, factor):
    FACTORS[factor](sign_in(world, OWNER))
    for door, knock in DOORS.items():
        world.clock.advance(hours=25)
        world.http.cookies.clear()
        before = live_sessions(world)
        knock(world)
        assert live_sessions(world) <= before, door
        assert not [name for name in world.http.cookies if "session" in name or name == REFRESH_COOKIE], door


@pytest.mark.parametrize("factor", FACTORS)
def test_p107_a_session_from_before_is_not_renewed(world, factor):
    """It gave the password alone."""
    before, own = sign_in(world, OWNER), sign_in(world, OWNER)
    FACTORS[factor](own)
    assert not before.is_alive
    refused(before.refresh(), 401, "UNAUTHENTICATED")
    # A passkey is made in a browser's session: that one goes on.
    assert own.is_alive == (factor != "a passkey")
    assert len(live_sessions(world)) == 1


def test_a_passkey_that_is_being_made_waits_for_no_code(world):
    """Offered as often as anybody likes, it leaves the budget of codes alone; and no code answers it."""
    person = with_passkey(world, Authenticator(URL, "localhost"), OWNER)
    for _ in range(30):
        person.open(HOME).send(f"{HOME}/passkeys", name="Another")
    with world.platform.services.store.read() as db:
        offers = [each for each in db.query(OtpChallengeRow) if each.session_id is not None]
        assert {each.code_hash for each in offers} == {b""}
    token = dict(person.form(f"{HOME}/passkeys/made").fields)["token"]
    world.clock.advance(minutes=11)
    sent = len(world.mail.sent)
    person.open(HOME).post_one(f"{HOME}/passkeys/remove", step_token=token, step_code="000000", status=422)
    assert options(person)
    assert len(world.mail.sent) == sent + 1
