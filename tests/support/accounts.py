"""Accounts as people use them: registering, signing in, an authenticator, mails."""

import re
from base64 import b32decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import httpx
from sqlalchemy import event

from custody.schemas.auth import REFRESH_COOKIE
from custody.server.sign_in.second_factor import code_at, step_at
from tests.support.databases import statements_of
from tests.support.platform import PASSWORD, As, World

CAROL = "carol@example.org"
NEW_PASSWORD = "another battery staple"


def register(world: World, email: str = CAROL) -> str:
    """Registers an account and empties the mailbox."""
    answer = world.http.post("/auth/register", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    world.deliver_mail()
    world.mail.sent.clear()
    return email


def validate(world: World, token_2fa: str, code: str) -> httpx.Response:
    return world.http.post("/auth/otp-validate", json={"token_2fa": token_2fa, "otp": code})


def another(code: str) -> str:
    """A wrong code in the place of this one."""
    return f"{(int(code) + 500_000) % 1_000_000:06d}"


@dataclass
class Session:
    """One sign-in on one device."""

    world: World
    token: str
    sid: str
    cookie: str

    @property
    def user(self) -> As:
        return As(self.world.http, {"Authorization": f"Bearer {self.token}"})

    @property
    def is_alive(self) -> bool:
        return self.user.get("/api/v1/get-user-info").status_code == 200

    def refresh(self) -> httpx.Response:
        self.world.http.cookies.clear()
        cookie = {"Cookie": f"{REFRESH_COOKIE}={self.cookie}"}
        return self.world.http.post("/auth/refresh", json={"sid": self.sid}, headers=cookie)

    def after(self, renewal: httpx.Response) -> "Session":
        """This session with the tokens of a renewal."""
        assert renewal.status_code == 200, renewal.text
        return replace(self, token=renewal.json()["token"], cookie=renewal.cookies[REFRESH_COOKIE])


def sign_in(
    world: World, email: str = CAROL, password: str = PASSWORD, code: str | None = None, **where: str
) -> Session:
    """Signs in with the mailed code, or with the authenticator's ``code``."""
    answer = world.http.post("/auth/login", json={"email": email, "password": password, **where})
    assert answer.status_code == 200, answer.text
    if answer.json()["requires_2FA"]:
        answer = validate(world, answer.json()["token_2fa"], code or world.mail.newest_code())
        assert answer.status_code == 200, answer.text
    world.http.cookies.clear()
    return Session(world, answer.json()["token"], answer.json()["sid"], answer.cookies[REFRESH_COOKIE])


@dataclass
class Phone:
    """An authenticator app (TOTP)."""

    world: World
    secret: str
    recovery_codes: list[str] = field(default_factory=list)

    @property
    def code(self) -> str:
        return code_at(b32decode(self.secret), step_at(self.world.clock()))

    def next_code(self) -> str:
        """The code of the next period: a code is accepted once."""
        self.world.clock.advance(seconds=30)
        return self.code


def enrol(session: Session, password: str = PASSWORD) -> Phone:
    """Enrols an authenticator and confirms it."""
    offered = session.user.post("/auth/totp/enrol", {"password": password})
    assert offered.status_code == 200, offered.text
    phone = Phone(session.world, offered.json()["secret"])
    confirmed = session.user.post("/auth/totp/confirm", {"code": phone.code})
    assert confirmed.status_code == 200, confirmed.text
    phone.recovery_codes = confirmed.json()["recovery_codes"]
    return phone


def mailed_token(world: World) -> str:
    """The reset token of the newest mail."""
    world.deliver_mail()
    (token,) = re.findall(r"^[A-Za-z0-9_-]{43}$", world.mail.sent[-1].text, re.MULTILINE)
    return token


def request_reset(world: World, email: str = CAROL) -> httpx.Response:
    return world.http.post("/auth/request-password-reset", json={"email": email})


def reset(world: World, token: str, new_password: str = NEW_PASSWORD) -> httpx.Response:
    return world.http.post("/auth/reset-password", json={"token": token, "new_password": new_password})


@dataclass
class Work:
    """The work behind a request, which its timing would reveal."""

    statements: list[str] = field(default_factory=list)
    commits: int = 0
    hashes: int = 0


@contextmanager
def measured(world: World) -> Iterator[Work]:
    """Counts every statement, commit and Argon2 computation:
    counts are exact where times are noisy.
    """
    work, passwords = Work(), world.platform.services.tools.passwords
    database, hasher = world.platform.services.store._database, passwords._hasher

    def on_commit(_connection) -> None:
        work.commits += 1

    class Counting:
        def __getattr__(self, name: str):
            work.hashes += name in {"hash", "verify"}
            return getattr(hasher, name)

    engines = (database.writing, database.reading)
    for engine in engines:
        event.listen(engine, "commit", on_commit)
    passwords._hasher = Counting()
    try:
        with statements_of(world.platform.services.store) as sent:
            yield work
        work.statements = [statement for statement, _ in sent]
    finally:
        passwords._hasher = hasher
        for engine in engines:
            event.remove(engine, "commit", on_commit)


def told(answer: httpx.Response) -> tuple[int, dict, set[str]]:
    """All that a caller sees, without the request's id."""
    return (
        answer.status_code,
        {name: value for name, value in answer.json().items() if name != "trace_id"},
        set(answer.headers),
    )
