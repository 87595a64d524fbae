"""The client: bounds on what a hostile platform can make it hold (bytes, values, pages; F), and its methods,
which are those of the declared calls.
"""

import ast
import json
import time

import httpx
import pytest

from custody.client import BadAnswer, Client
from custody.common.exchange import MAX_ANSWER_VALUES, Body, HttpRequest, Unfit
from custody.schemas.auth import LoginRequest
from custody.schemas.logs import ExportedLogs
from tests.custody.client.test_clients import client
from tools.client_calls import FILE, written


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip", "GZIP"])
def test_f_no_compressed_answer_is_read(coding: str) -> None:
    def packed(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        stream = httpx.ByteStream(b"\x1f\x8b")
        response = httpx.Response(200, stream=stream, request=request)
        response.headers["content-encoding"] = coding
        return response

    with client(packed) as platform, pytest.raises(BadAnswer, match="compressed"):
        platform.keys()


def body_of(content: bytes) -> bytes:
    body = Body(HttpRequest("GET", "/x", 1, 1), {})
    body.add(content)
    return body.whole()


def test_what_stands_inside_a_text_is_no_value() -> None:
    lines = '"7","a, \\"b\\" {c}"\r\n' * MAX_ANSWER_VALUES
    content = json.dumps({"csv": lines}).encode()
    assert body_of(content) == content
    assert ExportedLogs.model_validate_json(content).csv == lines


@pytest.mark.parametrize("entry", [b"1", b'"x"', b"{}", b"[]", b'{"a":1}'])
def test_f_more_values_than_a_reader_can_hold(entry: bytes) -> None:
    with pytest.raises(Unfit, match="values"):
        body_of(b"[" + b",".join([entry] * (2 * MAX_ANSWER_VALUES)) + b"]")


@pytest.mark.parametrize("text", [b'\\"' * 4_000_000, b"," * 8_000_000, b"\\" * 7_999_999])
def test_f_a_text_without_an_end_is_looked_at_once(text: bytes) -> None:
    """Restarting at each of its quotes would take days."""
    began = time.process_time()
    body_of(b'["' + text + b"," * MAX_ANSWER_VALUES)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("header", ["²", "9" * 5_000, "Mon, 01 Jan 0001 00:00:00 -9999999999999", "soon"])
def test_f_an_invalid_retry_after_raises_no_error_of_its_own(header: str) -> None:
    def busy(_request: httpx.Request) -> httpx.Response:
        told = {"title": "No", "status": 503, "detail": "busy", "code": "BACKEND_UNAVAILABLE"}
        return httpx.Response(503, json=told, headers=[(b"retry-after", header.encode())])

    with client(busy) as platform, pytest.raises(Exception, match="busy"):
        platform.keys()


SIGNED_IN = {"requires_2FA": False, "token": "access-two", "token_2fa": "", "sid": "sid-0123456789abcdef"}
NOT_CARRIED = {
    "a token that no header carries": ({"token": "\u00e9"}, []),
    "a session's id that no request takes": ({"sid": "x"}, []),
    "a cookie that no header carries": ({}, ["refresh_token=\u00e9"]),
    "a cookie of two values": ({}, ["refresh_token=one; Path=/auth", "refresh_token=two; Path=/other"]),
}


@pytest.mark.parametrize("kind", NOT_CARRIED)
def test_f_a_session_that_cannot_be_used_is_no_session(kind: str) -> None:
    """Otherwise every later call would fail, also signing out."""
    changes, cookies = NOT_CARRIED[kind]

    def answer(_request: httpx.Request) -> httpx.Response:
        headers = [("set-cookie", cookie.encode()) for cookie in cookies]
        return httpx.Response(200, json={**SIGNED_IN, **changes}, headers=headers)

    with client(answer, session=None) as platform:
        with pytest.raises(BadAnswer):
            platform.login(LoginRequest(email="a@b.example", password="correct horse battery"))
        assert platform.core.session is None


def test_they_are_as_written_from_the_declarations() -> None:
    """Else: ``python -m tools.client_calls``."""
    assert ast.dump(ast.parse(FILE.read_text())) == ast.dump(ast.parse(written()))


def test_the_arguments_of_a_query_have_the_names_of_its_shape() -> None:
    """In a process that has built no shape yet, as a client's is."""
    client = Client("https://custody.example", transport=lambda _request: None)
    for wrong in (lambda: client.contract(1, 2), lambda: client.contract(contract_id=2)):
        with pytest.raises(TypeError, match="workspace_id, contract_uid"):
            wrong()
