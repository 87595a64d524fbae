"""A connection to a server that answers without end is closed: over TLS, as an explorer's."""

import ssl

import httpx
import pytest

from custody.common.deadlines import ExchangeDeadlines
from tests.support.certificates import certificate_for
from tests.support.receiver import Receiver, receiver

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


@pytest.fixture
def line(tmp_path):
    """A server over TLS, and a client that trusts it."""
    trusted, context = certificate_for(tmp_path, "localhost")
    trusting = ssl.create_default_context(cafile=str(trusted))
    with receiver(context) as own, httpx.Client(verify=trusting, trust_env=False) as client:
        yield own, client


@pytest.mark.parametrize("how", sorted(FOREVER))
def test_what_never_ends_is_cut(line, how) -> None:
    own, client = line
    own.answer = dripping(*FOREVER[how])
    with pytest.raises(httpx.ReadTimeout), ExchangeDeadlines(grace=0.1).within(0.2) as watched:
        client.post(own.url(host="localhost"), extensions=watched, timeout=30)


def test_what_ends_in_time_is_not_touched(line) -> None:
    own, client = line
    watching = ExchangeDeadlines(grace=0)
    for _ in range(3):
        with watching.within(30) as watched:
            assert client.post(own.url(host="localhost"), extensions=watched).text == "ok"
