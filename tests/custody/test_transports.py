"""Each client, blocking or async, closes the connection to a server that answers without end."""

import asyncio
import contextlib
import http.client
import socket
import threading
from contextlib import closing

import httpx
import pytest

from custody.client import AsyncClient, Client, Session, Unreachable, flow
from custody.common.deadlines import Deadline
from custody.common.exchange import HttpReply, HttpRequest, NoAnswer, Outcome, Why
from custody.common.plain_http import PIECE, perform, pieces, tls_for
from custody.common.transports import perform as perform_async
from tests.support.certificates import certificate_for
from tests.support.dripping import dripping, listening_for

FOREVER = {
    "nothing": (b"", b""),
    "headers": (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
    "a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
}
SIGNED_IN = Session("sid-0123456789abcdef", "access", "refresh", ends_at=1e12)


def awaited(request):
    async def run():
        async with httpx.AsyncClient(trust_env=False) as http:
            return await perform_async(http, request)

    return asyncio.run(run())


@pytest.mark.parametrize("transport", [perform, awaited])
@pytest.mark.parametrize("how", FOREVER)
def test_f_an_exchange_without_an_end_is_left(transport, how):
    with dripping(*FOREVER[how]) as url:
        outcome = transport(HttpRequest("GET", url, 60, 0.3))
    assert isinstance(outcome, NoAnswer)
    assert outcome.why is Why.ENDLESS


def no_pause(_seconds):
    raise AssertionError("a platform that drips would drip again")


def user_of(url):
    with Client(url, session=SIGNED_IN, sleep=no_pause) as client:
        return client.user_info()


def awaited_user_of(url):
    async def run():
        async with AsyncClient(url, session=SIGNED_IN, sleep=no_pause) as client:
            return await client.user_info()

    return asyncio.run(run())


@pytest.mark.parametrize("user", [user_of, awaited_user_of])
def test_f_a_platform_that_drips_its_answer_does_not_hold_its_reader(user, monkeypatch):
    """Also ``signerd``, which reads the platform through the same client."""
    monkeypatch.setattr(flow, "TRANSFER_SECONDS", 0.3 - flow.LOCAL_SILENCE_SECONDS)
    with dripping(*FOREVER["a body"]) as url, pytest.raises(Unreachable, match="has no end"):
        user(url)


def test_an_exchange_without_an_end_is_cut_alone():
    """Another thread's, on the same client, may be a payment: cut off, its outcome would not be known."""
    drip_cut = threading.Event()

    def serve(line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            if line.recv(65536).startswith(b"GET"):
                line.sendall(FOREVER["headers"][0])
                while True:
                    line.sendall(b"x")
                    threading.Event().wait(0.02)
            assert drip_cut.wait(30)
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npaid")

    with listening_for(serve) as url:
        paid: list[Outcome] = []
        paying = threading.Thread(target=lambda: paid.append(perform(HttpRequest("POST", url, 60, 60))))
        paying.start()
        outcome = perform(HttpRequest("GET", url, 60, 0.3))
        drip_cut.set()
        paying.join(30)
    assert isinstance(outcome, NoAnswer)
    (answer,) = paid
    assert isinstance(answer, HttpReply)
    assert answer.content == b"paid"


def test_f_a_chunk_of_negative_size_is_not_taken_into_memory_at_once():
    def serve(line: socket.socket) -> None:
        with line:
            line.recv(65536)
            line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + bytes(64 * PIECE))

    sizes = []
    with (
        listening_for(serve) as url,
        closing(http.client.HTTPConnection(url.removeprefix("http://"))) as line,
    ):
        line.request("GET", "/")
        with line.getresponse() as answer, pytest.raises(http.client.IncompleteRead):
            sizes.extend(map(len, pieces(answer)))
    assert 0 < max(sizes) <= PIECE


def test_f_a_connection_that_opens_after_the_deadline_is_cut():
    ours, theirs = socket.socketpair()
    with ours, theirs, Deadline(0) as deadline:
        ours.settimeout(60)
        deadline.watch(ours)
        assert ours.recv(1) == b""


@pytest.mark.parametrize(("url", "port"), [("http://[::1]/", 80), ("https://[2001:db8::abcd]", 443)])
def test_an_ipv6_address_needs_no_port(url, port):
    asked = []

    def connect(*place):
        asked.append(place)
        raise OSError

    perform(HttpRequest("GET", url, 60, 60), connect)
    assert asked == [(url.split("[")[1].split("]")[0], port)]


def test_a_value_that_no_header_carries_is_sent_nowhere_and_not_quoted():
    with listening_for(lambda line: line.close()) as url:
        for value in ("Bearer hidden\n", "Bearer hidden\u2028"):
            outcome = perform(HttpRequest("GET", url, 60, 60, headers={"Authorization": value}))
            assert isinstance(outcome, NoAnswer)
            assert outcome.why is Why.BROKEN
            assert "hidden" not in str(outcome.cause)


@contextlib.contextmanager
def over_tls(folder, content: bytes):
    """The port of a server that answers so, and the certificate to trust."""
    certificate, context = certificate_for(folder, "localhost")

    def serve(line: socket.socket) -> None:
        # A client that does not trust it leaves.
        with line, contextlib.suppress(OSError), context.wrap_socket(line, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(content)
            secured.recv(65536)

    with listening_for(serve) as url:
        yield url.replace("http://127.0.0.1", "https://localhost"), certificate


@pytest.mark.parametrize(("length", "seconds"), [(4, 60), (5, 0.5)])
def test_over_tls_an_answer_is_whole_or_none(length, seconds, tmp_path):
    cookies = b"Set-Cookie: a=1\r\nset-cookie: b=2"
    answer = b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\npaid" % (cookies, length)
    with over_tls(tmp_path, answer) as (url, certificate):
        outcome = perform(HttpRequest("POST", url, 60, seconds), tls=tls_for(url, certificate))
    if length == len(b"paid"):
        assert isinstance(outcome, HttpReply)
        assert (outcome.content, outcome.headers["set-cookie"]) == (b"paid", "a=1, b=2")
    else:
        assert isinstance(outcome, NoAnswer)
        assert outcome.why is Why.ENDLESS


def test_a_platform_that_cannot_prove_to_be_itself_is_told_nothing(tmp_path):
    with over_tls(tmp_path, b"HTTP/1.1 200 OK\r\n\r\n") as (url, certificate):
        usual = perform(HttpRequest("GET", url, 60, 60), tls=tls_for(url, None))
        address = url.replace("localhost", "127.0.0.1")
        other_name = perform(HttpRequest("GET", address, 60, 60), tls=tls_for(url, certificate))
    for outcome in (usual, other_name):
        assert isinstance(outcome, NoAnswer)
        assert outcome.why is Why.NO_CONNECTION
        assert "CERTIFICATE" in str(outcome.cause)
