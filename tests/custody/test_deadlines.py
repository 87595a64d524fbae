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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return certificate_for(tmp_path_factory.mktemp("certificate"), "localhost")


@pytest.mark.parametrize("how", sorted(FOREVER))
def test_what_never_ends_is_cut(certificate, how) -> None:
    trusted, context = certificate
    watching = ExchangeDeadlines(grace=0.1)
    with (
        receiver(context) as own,
        httpx.Client(verify=ssl.create_default_context(cafile=str(trusted)), trust_env=False) as client,
    ):
        own.answer = dripping(*FOREVER[how])
        with pytest.raises(httpx.ReadTimeout), watching.within(0.2) as watched:
            client.post(own.url(host="localhost"), extensions=watched, timeout=30)


def test_what_ends_in_time_is_not_touched(certificate) -> None:
    trusted, context = certificate
    watching = ExchangeDeadlines(grace=0)
    with (
        receiver(context) as own,
        httpx.Client(verify=ssl.create_default_context(cafile=str(trusted)), trust_env=False) as client,
    ):
        for _ in range(3):
            with watching.within(30) as watched:
                assert client.post(own.url(host="localhost"), extensions=watched).text == "ok"
