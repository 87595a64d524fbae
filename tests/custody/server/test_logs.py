"""P49: no secret of a journey is in a log line, an audit row, a repr or a waiting job; and one trace id tells
the whole story of a payment.
"""

import io
import json
import logging
import re
from pathlib import Path

import httpx
import pytest
import structlog
from sqlalchemy import select

from custody.server.store.models import AuditEventRow
from tests.support.accounts import (
    NEW_PASSWORD,
    enrol,
    mailed_token,
    register,
    request_reset,
    reset,
    sign_in,
    validate,
)
from tests.support.custody import SHOP, Desk, ok, open_desk
from tests.support.databases import everything_stored
from tests.support.platform import PASSWORD


@pytest.fixture
def log() -> io.StringIO:
    """At its most verbose level."""
    text = io.StringIO()
    structlog.configure(
        # No time stamp: six digits of it could be a code's by chance.
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.PrintLoggerFactory(text),
        cache_logger_on_first_use=False,
    )
    return text


class Spy:
    """Every secret that passes through HTTP, gathered from what is sent and answered."""

    NAMES = frozenset(
        {"password", "new_password", "token", "token_2fa", "otp", "code", "secret", "otpauth_uri"}
    )

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def gather(self, body: dict) -> None:
        self.seen |= {value for name, value in body.items() if name in self.NAMES and isinstance(value, str)}
        self.seen |= set(body.get("recovery_codes", ()))

    def on_request(self, request: httpx.Request) -> None:
        if request.content.startswith(b"{") and request.content.endswith(b"}"):
            self.gather(json.loads(request.content))

    def on_response(self, response: httpx.Response) -> None:
        response.read()
        body = response.json()
        if isinstance(body, dict):
            self.gather(body)
        self.seen |= set(response.cookies.values())


def signs_in_in_every_way(desk: Desk) -> None:
    """And what is refused, and what crashes the reader."""
    world = desk.world
    carol = register(world, "eve@example.org")
    session = sign_in(world, carol, device="desk")
    phone = enrol(session)
    validate(world, world.login(carol).json()["token_2fa"], "111111")
    sign_in(world, carol, code=phone.next_code())
    sign_in(world, carol, code=phone.recovery_codes[0])
    ok(session.refresh())
    session.user.post("/auth/change-password", {"password": "a wrong one", "new_password": NEW_PASSWORD})
    session.user.post("/auth/change-password", {"password": PASSWORD, "new_password": NEW_PASSWORD})
    ok(request_reset(world, carol))
    ok(reset(world, mailed_token(world), "a third battery staple"))
    session.user.post("/auth/totp/enrol", {"password": [PASSWORD]})
    world.http.post("/auth/reset-password", json={"token": "t" * 43, "new_password": "short"})
    world.http.get("/api/v1/psbt", params={"workspace_id": 1, "status": PASSWORD}, headers=desk.admin.headers)
    world.http.post("/auth/login", content=f'{{"email": "{carol}", "password": "{PASSWORD}"')


def pays(desk: Desk) -> tuple[set[str], httpx.Response]:
    """To the confirmation. The payment's own words, and the answer to its last signature."""
    desk.deposit(100_000)
    psbt_id = ok(desk.propose(30_000, description="rent"))["psbt_id"]
    private = {desk.proposal(psbt_id)["psbt_base64"], SHOP}
    for name in ("alice", "bob"):
        signed = desk.signed(name, psbt_id)
        private.add(signed.to_base64())
        last = desk.submit(name, psbt_id, signed)
    desk.settle()
    desk.mine()
    assert desk.proposal(psbt_id)["status"] == "CONFIRMED"
    return private, last


def test_no_secret_of_a_journey_is_logged_recorded_or_shown(tmp_path: Path, log: io.StringIO) -> None:
    spy = Spy()
    with open_desk(tmp_path / "state") as desk:
        world = desk.world
        world.http.event_hooks = {"request": [spy.on_request], "response": [spy.on_response]}
        signs_in_in_every_way(desk)
        private, last = pays(desk)
        with world.platform.services.store.read() as db:
            recorded = "\n".join(str(vars(event)) for event in db.scalars(select(AuditEventRow)))
        places = {
            "log": log.getvalue(),
            "audit log": recorded,
            "database": everything_stored(world.platform.services.store),
            "repr": "\n".join(repr(mail) for mail in world.mail.sent) + repr(world.platform.services),
        }
        tokens = {user.headers["Authorization"].split()[1] for user in (desk.admin, *desk.signers.values())}
    # Six digits stand in times and ids too; what is longer is nowhere by chance.
    secrets = {text for each in spy.seen | tokens if len(each) > 6 for text in (each, each.replace("-", ""))}
    assert len(secrets) > 25
    assert {place for place, text in places.items() for secret in secrets if secret in text} == set()
    codes = [secret for secret in spy.seen if len(secret) == 6]
    alone = [rf"(?<![0-9A-Za-z]){re.escape(each)}(?![0-9A-Za-z])" for each in (*codes, *private)]
    assert [pattern for pattern in alone if re.search(pattern, places["log"])] == []
    _one_id_tells_the_whole_story(places["log"], last.headers["X-Trace-Id"])


def _one_id_tells_the_whole_story(told: str, trace_id: str) -> None:
    lines = [json.loads(line) for line in told.splitlines()]
    story = [line for line in lines if line.get("trace_id") == trace_id]
    (request,) = [line for line in story if line["event"] == "request"]
    assert request["path"] == "/api/v1/sign-psbt"
    jobs = [(line["kind"], line["outcome"], line["attempt"]) for line in story if line["event"] == "job"]
    assert jobs == [("broadcast", "done", 1)]
    assert {"request", "job", "tip moved", "proposal moved"} <= {line["event"] for line in lines}
