"""The table of routes: what it refuses, and what it never repeats."""

import json
import logging

import httpx
import pytest

from custody.common.exchange import HttpReply
from signerd import shapes
from signerd.asking import refusal
from signerd.endpoint import HOST, PREFIX, socket_path
from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute
from signerd.loopback.serve import interface
from tests.support.served import served_script

DIGEST = "ab" * 32


STATUS = shapes.Status(
    version="1",
    network="regtest",
    state_folder="/s",
    platform_url="https://custody.example",
    email=None,
    signed_in=False,
    platform_reachable=False,
    secrets="memory",
    fingerprint=None,
    devices_ready=0,
    vaults_pinned=0,
    waiting_for_you=0,
    journal_entries=0,
    journal_head="00",
    position=0,
)


def test_an_error_without_a_name_says_nothing_of_the_inside(state, caplog):
    caplog.set_level(logging.CRITICAL, logger="uvicorn.error")
    with served_script(state, status=ZeroDivisionError("secret of the inside")) as daemon:
        with daemon.client() as client, pytest.raises(DaemonFailed) as raised:
            client.status()
        assert "inside" not in str(raised.value)
        with daemon.client() as client, pytest.raises(DaemonFailed):
            client.status()


BAD_BODIES = [
    ("/session", {"email": "a@example.org", "password": "hunter2", "admin": True}),
    ("/session", {"email": "a@example.org", "password": ["hunter2"]}),
    ("/session/code", {"code": "hunter2" * 9}),
    ("/proposals/p-1/approve", {"digest": "hunter2"}),
    ("/proposals/p-1/approve", {"digest": DIGEST + "\n"}),
    ("/proposals/p 1/decline", {"reason": ""}),
    ("/registration", {"device_id": "../../etc", "digest": DIGEST}),
    ("/vaults/v-1/pin", [1]),
]


def sent(daemon, verb: str, path: str, **given) -> httpx.Response:
    """A request that no client of ours would make, over the socket. Raises what the daemon's problem speaks
    of.
    """
    transport = httpx.HTTPTransport(uds=str(socket_path(daemon.state)))
    with httpx.Client(transport=transport, trust_env=False) as http:
        answer = http.request(verb, f"http://{HOST}{PREFIX}{path}", **given)
    if answer.is_error:
        raise refusal(HttpReply(answer.status_code, answer.headers, answer.content))
    return answer


@pytest.mark.parametrize(("path", "body"), BAD_BODIES, ids=lambda value: str(value)[:60])
def test_l10_a_bad_request_is_refused_and_not_repeated_in_the_answer(silent, path, body):
    with pytest.raises(InvalidRequest) as refused:
        sent(silent, "POST", path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert "hunter2" not in str(refused.value)
    assert silent.service.calls == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", None])
def test_l9_a_body_that_does_not_say_that_it_is_json_is_refused(silent, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    with pytest.raises(InvalidRequest, match="application/json"):
        sent(silent, "POST", "/proposals/p-1/decline", content=b'{"reason": ""}', headers=headers)
    assert silent.service.calls == []


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 20_000])
def test_a_body_that_is_no_json_is_refused(silent, content):
    headers = {"Content-Type": "application/json"}
    with pytest.raises(InvalidRequest):
        sent(silent, "POST", "/proposals/p-1/decline", content=content, headers=headers)
    assert silent.service.calls == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nothing"),
        ("POST", "/status"),
        ("PUT", "/proposals/p-1"),
        ("GET", "/status/"),
        ("GET", "/../status"),
        ("OPTIONS", "/status"),
        ("TRACE", "/status"),
    ],
)
def test_what_is_not_in_the_table_is_not_served(silent, method, path):
    with pytest.raises(NoSuchRoute):
        sent(silent, method, path)
    assert silent.service.calls == []


@pytest.mark.anyio
async def test_l11_the_description_is_built_once():
    assert (await interface(None)).body is (await interface(None)).body
