"""Connections that are kept for further exchanges, over TLS, as an explorer's: what answers without end is
cut, and none is used that the server has closed.
"""

import ssl
import threading
import time

import pytest

from custody.common import plain_http
from custody.common.exchange import HttpReply, HttpRequest, NoAnswer, Why
from custody.common.plain_http import KeptConnections, trust
from tests.support.certificates import certificate_for
from tests.support.receiver import OK, TAKEN, Receiver, receiver

FOREVER = {
    "a status": (b"HTTP/1.1 ", b" "),
    "headers": (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the length of a piece": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
}


def dripping(first: bytes, drop: bytes):
    def answer(line: ssl.SSLSocket, own: Receiver) -> None:
        line.sendall(first)
        while not own.closing.wait(0.02):
            line.sendall(drop)

    return answer


def many(line: ssl.SSLSocket, own: Receiver) -> None:
    """Answers each request of the connection, until the client ends it."""
    line.sendall(OK)
    while line.recv(65536):
        line.sendall(OK)


def asked(own: Receiver, seconds: float = 30) -> HttpRequest:
    return HttpRequest("POST", own.url(host="localhost"), 30, seconds)


@pytest.fixture
def line(tmp_path):
    """A server over TLS, and a transport that trusts it."""
    trusted, context = certificate_for(tmp_path, "localhost")
    with receiver(context) as own:
        transport = KeptConnections(own.url(host="localhost"), 2)
        transport.tls = trust(trusted)
        yield own, transport
        transport.close()


@pytest.mark.parametrize("how", sorted(FOREVER))
def test_what_never_ends_is_cut(line, how) -> None:
    """The first answer of a connection, and a later one."""
    own, transport = line
    own.answer = dripping(*FOREVER[how])
    for _ in range(2):
        outcome = transport(asked(own, 0.3))
        assert isinstance(outcome, NoAnswer)
        assert outcome.why is Why.ENDLESS

    def later(line: ssl.SSLSocket, own: Receiver) -> None:
        line.sendall(OK)
        line.recv(65536)
        dripping(*FOREVER[how])(line, own)

    own.answer = later
    before = len(own.arrived)
    assert isinstance(transport(asked(own)), HttpReply)
    outcome = transport(asked(own, 0.3))
    assert isinstance(outcome, NoAnswer)
    assert (outcome.why, len(own.arrived)) == (Why.ENDLESS, before + 1)


def test_what_ends_in_time_goes_on_over_one_connection(line) -> None:
    own, transport = line
    own.answer = many
    for _ in range(3):
        assert transport(asked(own)).content == b"ok"
    assert len(own.arrived) == 1


def test_what_the_server_has_closed_is_not_used_again(line) -> None:
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


def test_what_was_idle_for_long_is_not_used_again(line, monkeypatch) -> None:
    own, transport = line
    own.answer = many
    monkeypatch.setattr(plain_http, "KEPT_SECONDS", -1)
    for number in range(1, 3):
        assert transport(asked(own)).content == b"ok"
        assert len(own.arrived) == number


def test_no_more_exchanges_go_on_at_a_time(line) -> None:
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


def test_after_the_close_none_is_kept(line) -> None:
    own, transport = line
    own.answer = many
    assert transport(asked(own)).content == b"ok"
    transport.close()
    assert transport._idle == []
    assert transport(asked(own)).content == b"ok"
    assert [kept.sock for kept in transport._idle] == [None]
