"""Each client, blocking or async, closes the connection to a server that answers without end; so does one
that keeps its connections for further exchanges, which uses none that the server has closed.
"""

import asyncio
import contextlib
import http.client
import io
import socket
import ssl
import threading
import time
from contextlib import closing

import httpx
import pytest

from custody.client import AsyncClient, Client, Session, Unreachable, flow
from custody.common import plain_http
from custody.common.deadlines import Deadline
from custody.common.exchange import HttpReply, HttpRequest, NoAnswer, Outcome, Why
from custody.common.plain_http import PIECE, KeptConnections, perform, pieces, tls_for, trust
from custody.common.transports import perform as perform_async
from tests.support.certificates import certificate_for
from tests.support.dripping import dripping, listening_for
from tests.support.receiver import OK, TAKEN, Receiver, receiver

FOREVER = {
    "nothing": (b"", b""),
    "headers": (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
    "a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
    "a status": (b"HTTP/1.1 ", b" "),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the length of a piece": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
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
    # The second is what a reader holds, more than a piece since Python 3.14.
    assert 0 < max(sizes) <= max(PIECE, io.DEFAULT_BUFFER_SIZE)


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


@pytest.fixture
def line(tmp_path):
    """A server over TLS, and a transport that keeps its connections and trusts it."""
    trusted, context = certificate_for(tmp_path, "localhost")
    with receiver(context) as own:
        transport = KeptConnections(own.url(host="localhost"), 2)
        transport.tls = trust(trusted)
        yield own, transport
        transport.close()


def endless(first: bytes, drop: bytes = b""):
    """What a server over TLS does with a connection."""

    def answer(line: ssl.SSLSocket, own: Receiver) -> None:
        line.sendall(first)
        while not own.closing.wait(0.02):
            line.sendall(drop)

    return answer


def asked(own: Receiver, seconds: float = 30) -> HttpRequest:
    return HttpRequest("POST", own.url(host="localhost"), 30, seconds)


@pytest.mark.parametrize(("length", "seconds"), [(4, 60), (5, 0.5)])
def test_over_tls_an_answer_is_whole_or_none(length, seconds, line):
    own, transport = line
    cookies = b"Set-Cookie: a=1\r\nset-cookie: b=2"
    own.answer = endless(b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\npaid" % (cookies, length))
    outcome = perform(asked(own, seconds), tls=transport.tls)
    if length == len(b"paid"):
        assert isinstance(outcome, HttpReply)
        assert (outcome.content, outcome.headers["set-cookie"]) == (b"paid", "a=1, b=2")
    else:
        assert isinstance(outcome, NoAnswer)
        assert outcome.why is Why.ENDLESS


def test_a_platform_that_cannot_prove_to_be_itself_is_told_nothing(line):
    own, transport = line
    url = own.url(host="localhost")
    usual = perform(asked(own), tls=tls_for(url, None))
    address = HttpRequest("GET", own.url(host="127.0.0.1"), 60, 60)
    other_name = perform(address, tls=transport.tls)
    for outcome in (usual, other_name):
        assert isinstance(outcome, NoAnswer)
        assert outcome.why is Why.NO_CONNECTION
        assert "CERTIFICATE" in str(outcome.cause)
    assert own.arrived == []


# --- connections that are kept, as to an explorer -----------------------------------------------------------


def many(line: ssl.SSLSocket, own: Receiver) -> None:
    """Answers each request of the connection, until the client ends it."""
    line.sendall(OK)
    while line.recv(65536):
        line.sendall(OK)


@pytest.mark.parametrize("how", sorted(FOREVER.keys() - {"nothing", "a body"}))
def test_what_never_ends_is_cut(line, how):
    """The first answer of a connection, and a later one."""
    own, transport = line
    own.answer = endless(*FOREVER[how])
    for _ in range(2):
        outcome = transport(asked(own, 0.3))
        assert isinstance(outcome, NoAnswer)
        assert outcome.why is Why.ENDLESS

    def later(line: ssl.SSLSocket, own: Receiver) -> None:
        line.sendall(OK)
        line.recv(65536)
        endless(*FOREVER[how])(line, own)

    own.answer = later
    before = len(own.arrived)
    assert isinstance(transport(asked(own)), HttpReply)
    outcome = transport(asked(own, 0.3))
    assert isinstance(outcome, NoAnswer)
    assert (outcome.why, len(own.arrived)) == (Why.ENDLESS, before + 1)


def test_what_ends_in_time_goes_on_over_one_connection(line):
    own, transport = line
    own.answer = many
    for _ in range(3):
        assert transport(asked(own)).content == b"ok"
    assert len(own.arrived) == 1


def test_what_the_server_has_closed_is_not_used_again(line):
    own, transport = line
    own.answer = TAKEN
    for number in range(1, 4):
        assert transport(asked(own)).content == b"ok"
        assert len(own.arrived) == number
        # Its end arrives a moment after the answer.
        (kept,) = transport._idle
        deadline = time.monotonic() + 10
        while not plain_http._is_readable(kept.sock) and time.monotonic() < deadline:
            time.sleep(0.01)


def test_what_was_idle_for_long_is_not_used_again(line, monkeypatch):
    own, transport = line
    own.answer = many
    monkeypatch.setattr(plain_http, "KEPT_SECONDS", -1)
    for number in range(1, 3):
        assert transport(asked(own)).content == b"ok"
        assert len(own.arrived) == number


def test_no_more_exchanges_go_on_at_a_time(line):
    own, transport = line
    held, going = threading.Event(), threading.Semaphore(0)

    def hold(line: ssl.SSLSocket, own: Receiver) -> None:
        going.release()
        held.wait(30)
        line.sendall(OK)

    own.answer = hold
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(transport(asked(own)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert all(going.acquire(timeout=30) for _ in threads)
    assert transport(asked(own, 0.2)).why is Why.LATE
    assert len(own.arrived) == 2
    held.set()
    for thread in threads:
        thread.join(30)
    assert [outcome.content for outcome in outcomes] == [b"ok"] * 2


def test_after_the_close_none_is_kept(line):
    own, transport = line
    own.answer = many
    assert transport(asked(own)).content == b"ok"
    transport.close()
    assert transport._idle == []
    assert transport(asked(own)).content == b"ok"
    assert [kept.sock for kept in transport._idle] == [None]
