"""L1-L4, L9-L11, L13, L14: what comes back over the real port, to the byte."""

import asyncio
import contextlib
import re
import socket

import pytest

from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.loopback import serve
from signerd.loopback.access.guard import MAX_BODY_BYTES
from signerd.loopback.answers import ROUTES
from signerd.loopback.events import MAX_STREAMS_OF_AN_APP
from signerd.loopback.page.routes import ROWS as PAGE_ROWS
from tests.support.ported import PATIENCE_SECONDS, Port, exchange, ported, secret_in
from tests.support.served import make_outer, served_daemon

SITE = "https://wallet.example"
READER = LoopbackCaller(CallerKind.APP, "Reader", frozenset({Right.ANYONE, Right.READ}), "a-1")
BEARER = {"Authorization": "Bearer site", "Origin": SITE}
CORS = "access-control-allow-origin"


@pytest.fixture
def port(tmp_path):
    with ported(tmp_path / "s", devices=()) as found:
        tokens = found.daemon.service.apps
        tokens.paired["site", SITE] = tokens.paired["program", None] = READER
        tokens.let_in.add(SITE)
        yield found


def every_row():
    return [(row.method, "/v1" + row.path) for row in ROUTES] + [
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("POST", "/enter"),
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:17707"},
        {"Origin": "https://evil.example"},
        {"Origin": f"{SITE}.evil.example"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
    ],
    ids=str,
)
def test_l1_l2_l3_l4_another_site_gets_a_no_without_a_word_of_cors_whatever_it_asks(port, headers):
    for method, path in every_row():
        for verb in {method, "OPTIONS"}:
            answer = port.ask(verb, path, headers)
            assert answer.status == 403, (verb, path)
            assert not [name for name in answer.headers if name.startswith("access-control")]
    assert port.daemon.service.calls == []


def test_l16_nothing_of_the_persons_or_of_an_app_is_used_up_by_strangers_at_any_door(tmp_path):
    """Whatever they send, and whatever the page sends that lost its session."""
    posts = {(row.method, re.sub("{[^}]*}", "x", row.path)) for row in PAGE_ROWS if row.method != "GET"}
    posts |= {(method, path) for method, path in every_row() if method != "GET"}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with ported(tmp_path / "s", clock=lambda: 0.0, devices=()) as port:
        port.daemon.service.apps.paired["program", None] = READER
        code, ours = port.entry(), port.by_the_page()
        origins = ({"Origin": "null"}, {}, {"Origin": port.origin}, {"Origin": "https://evil.example"})
        for method, path in sorted(posts):
            for headers in origins * 2:
                port.ask(method, path, {**form, **headers}, b"code=AAAAA-AAAAA&digest=00&password=no")
        assert port.daemon.service.calls == []
        assert secret_in(port.enter(code))
        for known in (ours, {"Authorization": "Bearer program"}):
            assert port.ask("GET", "/v1/devices", known).status == 200


def test_a_site_that_was_let_in_reads_its_answers_and_why_it_was_refused(port):
    answer = port.ask("GET", "/v1/devices", BEARER)
    assert (answer.status, answer.body) == (200, b"[]")
    refused = port.ask("GET", "/v1/devices", {"Origin": SITE})
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    for one in (answer, refused):
        assert one.headers[CORS] == SITE
        assert one.headers["vary"] == "Origin"
        assert one.headers["cross-origin-resource-policy"] == "cross-origin"
        assert "access-control-allow-credentials" not in one.headers


def test_l14_a_preflight_is_answered_for_a_site_that_was_let_in_alone(port):
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    private = {"Access-Control-Request-Private-Network": "true"}
    plain = port.ask("OPTIONS", "/v1/devices", {"Origin": SITE, **asks})
    assert plain.status == 204
    assert plain.headers[CORS] == SITE
    assert "Authorization" in plain.headers["access-control-allow-headers"]
    assert "access-control-allow-private-network" not in plain.headers
    allowed = port.ask("OPTIONS", "/v1/devices", {"Origin": SITE, **asks, **private})
    assert allowed.headers["access-control-allow-private-network"] == "true"
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
        refused = port.ask("OPTIONS", "/v1/devices", {**headers, **asks, **private})
        assert refused.status == 403
        assert not [name for name in refused.headers if name.startswith("access-control")]
    assert port.daemon.service.calls == []


def test_l10_a_secret_in_an_address_is_not_read(port):
    secret = port.secret()
    for query in (
        "token=program",
        "access_token=program",
        f"session={secret}",
        f"x-signerd-session={secret}",
        "authorization=Bearer+program",
    ):
        assert port.ask("GET", f"/v1/devices?{query}").status == 401
    assert port.ask("GET", "/v1/devices", {"Referer": f"{port.origin}/"}).status == 401


def test_every_answer_says_what_a_browser_may_do_with_it(port):
    for answer in (
        port.ask("GET", "/v1/devices", {"Authorization": "Bearer program"}),
        port.ask("GET", "/v1/devices"),
        port.ask("GET", "/v1/nowhere"),
        port.ask("GET", "/"),
        port.ask("GET", "/v1/devices", {"Host": "evil.example"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_l6_an_app_that_asks_too_often_is_told_when_to_come_again(tmp_path):
    with ported(tmp_path / "s", lambda: 0.0, devices=()) as port:
        port.daemon.service.apps.paired["program", None] = READER
        answers = [port.ask("GET", "/v1/devices", {"Authorization": "Bearer program"}) for _ in range(61)]
        assert {answer.status for answer in answers[:60]} == {200}
        assert (answers[60].status, answers[60].code) == (429, "too-many-requests")
        assert answers[60].headers["retry-after"] == "1"


# --- sizes and times ----------------------------------------------------------------------------------------


def test_l11_endless_headers_are_refused(port):
    head = f"GET / HTTP/1.1\r\nHost: {port.host}\r\nX: ".encode() + b"x" * (serve.MAX_HEADER_BYTES + 1)
    assert exchange(port.number, head).startswith(b"HTTP/1.1 400 ")


def test_l11_a_stranger_sends_no_large_body_anywhere(port):
    for method, path in serve.LARGER:
        answer = port.ask(method, path, {"Content-Type": "application/json"}, b" " * (MAX_BODY_BYTES + 1))
        assert answer.status == 413


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: "], ids=["silent", "half"])
def test_l11_a_connection_without_a_request_is_ended(tmp_path, monkeypatch, begun):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.05)
    with ported(tmp_path / "s") as port:
        assert exchange(port.number, begun) == b""


def test_l11_a_kept_connection_ends_without_a_further_request_which_may_come_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.2)
    with ported(tmp_path / "s") as port:
        head = f"GET /v1/devices HTTP/1.1\r\nHost: {port.host}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", port.number), PATIENCE_SECONDS) as raw:
            for _ in range(3):
                raw.sendall(head[:9])
                raw.sendall(head[9:])
                seen(raw, b'"code":"not-paired"')
            raw.sendall(b"GET / HTT")
            with contextlib.suppress(ConnectionResetError):
                assert raw.recv(1) == b""


def test_l11_a_flooded_port_does_not_keep_the_terminal_out(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "MAX_CONNECTIONS", 4)
    with ported(tmp_path / "s", devices=()) as port:
        idle = [socket.create_connection(("127.0.0.1", port.number)) for _ in range(4)]
        try:
            assert port.ask("GET", "/").status == 503
            with port.daemon.client() as client:
                assert client.devices() == ()
        finally:
            for one in idle:
                one.close()


# --- streams ------------------------------------------------------------------------------------------------


def opened_stream(port, headers) -> socket.socket:
    stream = socket.create_connection(("127.0.0.1", port.number), PATIENCE_SECONDS)
    lines = [f"{name}: {value}" for name, value in {"Host": port.host, **headers}.items()]
    stream.sendall("\r\n".join(["GET /v1/events?after=0 HTTP/1.1", *lines]).encode() + b"\r\n\r\n")
    return stream


def heard(stream) -> bytes:
    found = b""
    while part := stream.recv(65536):
        found += part
    return found


def seen(stream, words: bytes) -> None:
    found = b""
    while words not in found:
        part = stream.recv(65536)
        assert part, found
        found += part


def test_l13_a_stream_of_a_session_that_was_left_tells_nothing_more(port):
    headers = port.by_the_page()
    with opened_stream(port, {**headers, "Connection": "close"}) as stream:
        port.daemon.feed("p-1", "progress", "before")
        seen(stream, b"before")
        port.daemon.on_loop(port.sessions.leave, port.session(headers))
        port.daemon.feed("p-1", "progress", "after")
        assert b"after" not in heard(stream)


def test_l11_an_app_follows_the_events_only_so_often(port):
    def headers(token):
        return {"Authorization": f"Bearer {token}"}

    port.daemon.service.apps.paired["other", None] = LoopbackCaller(
        CallerKind.APP, "Other", READER.rights, "a-2"
    )
    port.daemon.feed("p-1", "progress", "news")
    streams = [opened_stream(port, headers("program")) for _ in range(MAX_STREAMS_OF_AN_APP)]
    try:
        for stream in streams:
            seen(stream, b"news")
        assert port.ask("GET", "/v1/events", headers("program")).status == 429
        with opened_stream(port, headers("other")) as other:
            seen(other, b"news")
    finally:
        for stream in streams:
            stream.close()


@pytest.mark.anyio
async def test_an_idle_port_never_wakes(tmp_path):
    from signerd.loopback.serve import serving
    from tests.support.served import Scripted

    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    async with serving(Scripted(), state, port=0):
        for _ in range(10):
            await asyncio.sleep(0)
        timers = [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]
        assert timers == []


LIST = ("GET", "/api/v1/list-wallets")


def test_l6_an_app_that_lists_the_vaults_over_and_over_asks_the_platform_once(tmp_path, monkeypatch):
    outer = make_outer(tmp_path)
    reader = LoopbackCaller(CallerKind.APP, "Reader", frozenset({Right.ANYONE, Right.READ}), "a-1")
    with served_daemon(tmp_path / "s", outer, port=0) as daemon:
        daemon.until(lambda: daemon.service.follower.reachable)
        monkeypatch.setattr(daemon.service.apps, "caller", lambda _token, _origin: reader)
        port, before = Port(daemon, None), outer.platform.requests.count(LIST)
        for _ in range(10):
            assert port.ask("GET", "/v1/vaults", {"Authorization": "Bearer x"}).status == 200
        assert outer.platform.requests.count(LIST) - before <= 1
