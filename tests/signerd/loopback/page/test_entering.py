"""Entering the page and leaving it, over the real port."""

import pytest

from signerd.errors import NotAllowed
from tests.signerd.loopback.access.test_guard import Clock
from tests.support.ported import ported, secret_in

WINDOW = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def port(tmp_path, clock):
    with ported(tmp_path / "s", clock, devices=()) as found:
        yield found


def test_a_code_becomes_a_session_that_no_other_site_gets(port):
    answer = port.enter(port.entry(), WINDOW)
    assert answer.status == 200
    assert port.ask("GET", "/v1/devices", {"X-Signerd-Session": secret_in(answer)}).status == 200
    # Browsers send a cookie to every other port of this host, whose servers may be other users' (L12).
    assert "set-cookie" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert "location" not in answer.headers
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Origin": "null", "Sec-Fetch-Dest": "iframe"},
        {"Origin": "null", "Sec-Fetch-Dest": "empty"},
        {"Host": "evil.example"},
    ],
    ids=str,
)
def test_l4_another_site_cannot_enter_and_voids_no_code(port, headers):
    code = port.entry()
    for _ in range(10):
        assert port.enter(code, headers).status == 403
    assert port.enter(code).status == 200


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b'{"code": "x"}', 422),
        ("text/plain", b"code=x", 422),
        ("application/x-www-form-urlencoded", b"code=" + b"x" * 2000, 413),
        ("application/x-www-form-urlencoded", b"a=1&b=2&c=3&d=4&e=5&code=x", 422),
        ("application/x-www-form-urlencoded", b"code=\xff", 422),
        ("application/x-www-form-urlencoded", b"other=x", 403),
    ],
)
def test_l11_what_is_no_form_of_ours_is_refused(port, kind, body, status):
    assert port.ask("POST", "/enter", {"Origin": "null", "Content-Type": kind}, body).status == status


def test_l10_a_code_in_an_address_is_worth_nothing(port):
    code = port.entry()
    assert port.ask("GET", f"/enter?code={code}").status == 401
    assert port.ask("POST", f"/enter?code={code}", {"Origin": "null"}).status == 422
    assert port.enter(code).status == 200


def test_l4_a_page_mints_no_entries(port):
    answer = port.ask("POST", "/v1/page/entry", port.by_the_page())
    assert (answer.status, answer.code) == (403, NotAllowed.code)
