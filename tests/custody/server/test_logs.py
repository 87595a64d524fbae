"""P49: the log of a whole payment, at its most verbose level, contains no secret."""

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from custody.schemas.auth import REFRESH_COOKIE
from tests.support.accounts import Session, mailed_token, register, request_reset, reset, validate
from tests.support.custody import SHOP, ok, open_desk
from tests.support.platform import PASSWORD

WRONG = "not the right phrase at all"
NEW = "a phrase that is new and long"
EVE = "eve@example.org"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
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
    )
    yield text
    structlog.reset_defaults()


def test_no_secret_is_ever_in_a_log_line(tmp_path: Path, log: io.StringIO) -> None:
    secrets: set[str] = {PASSWORD, WRONG, NEW}
    with open_desk(tmp_path / "state") as desk:
        world = desk.world
        http = world.http
        # An account of one's own: a mailed code, a wrong one, a lost password, an authenticator.
        register(world, EVE)
        assert world.login(EVE, WRONG).status_code == 401
        waiting = ok(world.login(EVE))["token_2fa"]
        code = world.mail.newest_code()
        assert validate(world, waiting, f"{(int(code) + 1) % 10**6:06}").status_code == 401
        answer = validate(world, waiting, code)
        eve = Session(world, ok(answer)["token"], answer.json()["sid"], answer.cookies[REFRESH_COOKIE])
        secrets |= {waiting, code, eve.token, eve.cookie}
        enrolled = ok(eve.user.post("/auth/totp/enrol", {"password": PASSWORD}))
        secrets |= {value for value in enrolled.values() if isinstance(value, str)}
        secrets |= {ok(eve.refresh())["token"]}
        ok(request_reset(world, EVE))
        secrets.add(token := mailed_token(world))
        ok(reset(world, token, NEW))
        # What is refused, and what crashes the reader.
        http.get("/api/v1/psbt", params={"workspace_id": 1, "status": PASSWORD}, headers=desk.admin.headers)
        http.post("/auth/login", content=f'{{"email": "{EVE}", "password": "{PASSWORD}"')
        # The main job, to the confirmation.
        desk.deposit(100_000)
        psbt_id = ok(desk.propose(30_000, description="rent"))["psbt_id"]
        secrets |= {desk.proposal(psbt_id)["psbt_base64"], SHOP}
        for name in ("alice", "bob"):
            secrets.add(desk.signed(name, psbt_id).to_base64())
            last = desk.submit(name, psbt_id, desk.signed(name, psbt_id))
        desk.settle()
        desk.chain.mine(1)
        desk.watcher.look()
        assert desk.proposal(psbt_id)["status"] == "CONFIRMED"
        for user in (desk.admin, *desk.signers.values()):
            secrets.add(user.headers["Authorization"].removeprefix("Bearer "))
    told = log.getvalue()
    # Alone: six digits may stand in the middle of a hash by chance.
    leaked = [
        secret
        for secret in secrets
        if re.search(rf"(?<![0-9A-Za-z]){re.escape(secret)}(?![0-9A-Za-z])", told)
    ]
    assert leaked == []
    _one_id_tells_the_whole_story(told, last.headers["X-Trace-Id"])


def _one_id_tells_the_whole_story(told: str, trace_id: str) -> None:
    lines = [json.loads(line) for line in told.splitlines()]
    story = [line for line in lines if line.get("trace_id") == trace_id]
    (request,) = [line for line in story if line["event"] == "request"]
    assert request["path"] == "/api/v1/sign-psbt"
    jobs = [(line["kind"], line["outcome"], line["attempt"]) for line in story if line["event"] == "job"]
    assert jobs == [("broadcast", "done", 1)]
    assert {"request", "job", "tip moved", "proposal moved"} <= {line["event"] for line in lines}
