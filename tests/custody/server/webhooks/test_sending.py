"""One attempt against a real TLS server, and what a receiver may do to us without keeping or misleading us
(P51).
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.server.rules.webhooks import WebhookUrl, read_url
from custody.server.webhooks.sending import DeliveryTrouble, Sender, Undelivered
from tests.support.certificates import certificate_for
from tests.support.receiver import HOST, PUBLIC, Receiver, Wire, answering, receiver, status

BODY = b'{"id":"1"}'
PATIENCE = 10.0
LITTLE_PATIENCE = 0.6


@pytest.fixture
def authority(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    return certificate_for(tmp_path, HOST)


@pytest.fixture
def own(authority: tuple[Path, ssl.SSLContext]) -> Iterator[Receiver]:
    with receiver(authority[1]) as running:
        yield running


@pytest.fixture
def wire() -> Wire:
    return Wire()


def sender(wire: Wire, ca: Path, seconds: float = PATIENCE) -> Sender:
    return Sender(wire.resolve, ca, connect=wire.connect, seconds=seconds)


def trouble_of(sending: Sender, url: WebhookUrl) -> DeliveryTrouble:
    with pytest.raises(Undelivered) as refused:
        sending.ask("POST", url, BODY, {})
    return refused.value.trouble


def test_what_is_sent_arrives_as_it_is(authority, own, wire) -> None:
    code = (
        sender(wire, authority[0])
        .ask("POST", read_url(own.url("/a/b?c=d")), BODY, {"Webhook-Id": "1"})
        .status
    )
    assert code == 200
    (request,) = own.arrived
    assert (request.line, request.body) == ("POST /a/b?c=d HTTP/1.1", BODY)
    assert request.headers["host"] == f"{HOST}:{own.port}"
    assert request.headers["webhook-id"] == "1"


def test_p51_the_connection_goes_to_the_address_that_was_checked(authority, own, wire) -> None:
    """Rebinding: the name has a public address when it is checked, and a private one whenever it is asked
    again.
    """
    wire.addresses = [[PUBLIC], ["127.0.0.1"]]
    assert sender(wire, authority[0]).ask("POST", read_url(own.url()), BODY, {}).status == 200
    assert (wire.asked, wire.called) == ([f"{HOST}."], [(PUBLIC, own.port)])


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["fe80::1%eth0"], [PUBLIC, "192.168.1.1"], ["192.168.1.1", PUBLIC], ["no address"]],
)
def test_p51_no_receiver_is_called_where_any_address_is_not_public(authority, own, wire, addresses) -> None:
    wire.addresses = [addresses]
    assert trouble_of(sender(wire, authority[0]), read_url(own.url())) is DeliveryTrouble.ADDRESS_NOT_PUBLIC
    assert (wire.called, own.arrived) == ([], [])


def test_p51_a_redirect_is_an_answer_and_not_followed(authority, own, wire) -> None:
    own.answer = status(307, "Location: https://169.254.169.254/latest/meta-data")
    assert sender(wire, authority[0]).ask("POST", read_url(own.url()), BODY, {}).status == 307
    assert (len(wire.asked), len(wire.called), len(own.arrived)) == (1, 1, 1)


def test_p51_a_proxy_of_the_environment_is_not_asked(authority, own, wire, monkeypatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert sender(wire, authority[0]).ask("POST", read_url(own.url()), BODY, {}).status == 200


def test_a_host_that_the_operator_allows_may_be_anywhere(authority, own, wire) -> None:
    wire.addresses = [["127.0.0.1"]]
    url = read_url(own.url(), allowed=[HOST])
    assert sender(wire, authority[0]).ask("POST", url, BODY, {}).status == 200
    # As it is written: an operator's names may be short ones of the own network.
    assert wire.asked == [HOST]


@pytest.mark.parametrize("name", [HOST, "elsewhere.example.org"])
def test_a_certificate_of_an_unknown_authority_or_for_another_name_is_refused(tmp_path, wire, name) -> None:
    ca, context = certificate_for(tmp_path, name)
    with receiver(context) as other:
        sending = Sender(wire.resolve, None if name == HOST else ca, connect=wire.connect)
        assert trouble_of(sending, read_url(other.url())) is DeliveryTrouble.TLS_FAILED
        assert other.arrived == []


def test_a_receiver_that_is_down_is_unreachable(authority, wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    url = read_url(f"https://{HOST}:{port}/")
    assert trouble_of(sender(wire, authority[0]), url) is DeliveryTrouble.UNREACHABLE


def test_the_next_address_is_tried_where_one_is_dead(authority, own, wire) -> None:
    wire.addresses = [["1.1.1.1", PUBLIC]]
    connect = wire.connect

    def first_is_dead(place: tuple[str, int], seconds: float) -> socket.socket:
        line = connect(place, seconds)
        if place[0] == "1.1.1.1":
            line.close()
            raise ConnectionRefusedError
        return line

    sending = Sender(wire.resolve, authority[0], connect=first_is_dead)
    assert sending.ask("POST", read_url(own.url()), BODY, {}).status == 200
    assert [address for address, _ in wire.called] == ["1.1.1.1", PUBLIC]


def _hang(_line: ssl.SSLSocket, own: Receiver) -> None:
    own.closing.wait(10)


def _drip(line: ssl.SSLSocket, own: Receiver) -> None:
    """Just often enough that no single read takes too long."""
    line.sendall(b"HTTP/1.1 200 OK\r\n")
    while not own.closing.wait(0.05):
        line.sendall(b"X-Drip: 1\r\n")


def _continue_for_ever(line: ssl.SSLSocket, own: Receiver) -> None:
    while not own.closing.wait(0.01):
        line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize("answer", [_hang, _drip, _continue_for_ever])
def test_a_slow_receiver_is_cut_off_at_the_deadline(authority, own, wire, answer) -> None:
    """Headers that never end by their number or by the deadline, whichever comes first."""
    own.answer = answer
    started = time.monotonic()
    found = trouble_of(sender(wire, authority[0], LITTLE_PATIENCE), read_url(own.url()))
    assert found is DeliveryTrouble.TIMED_OUT or (answer is _drip and found is DeliveryTrouble.BAD_ANSWER)
    assert time.monotonic() - started < 5


def test_a_handshake_that_hangs_is_cut_off(authority, wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = read_url(f"https://{HOST}:{silent.getsockname()[1]}/")
        assert trouble_of(sender(wire, authority[0], LITTLE_PATIENCE), url) is DeliveryTrouble.TIMED_OUT


def test_a_resolver_that_hangs_is_not_waited_for(authority, own, wire) -> None:
    over = threading.Event()

    def resolve(_host: str) -> list[str]:
        over.wait(10)
        return [PUBLIC]

    sending = Sender(resolve, authority[0], connect=wire.connect, seconds=LITTLE_PATIENCE)
    try:
        assert trouble_of(sending, read_url(own.url())) is DeliveryTrouble.NAME_NOT_FOUND
    finally:
        over.set()


def test_a_status_is_enough_where_the_body_hangs(authority, own, wire) -> None:
    """However large it would be: it is not read."""

    def answer(line: ssl.SSLSocket, receiver_: Receiver) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" + bytes(100_000))
        receiver_.closing.wait(10)

    own.answer = answer
    started = time.monotonic()
    assert sender(wire, authority[0]).ask("POST", read_url(own.url()), BODY, {}).status == 200
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.0\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 1_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "another protocol", "no status", "a thousand headers", "a long header"],
)
def test_what_is_no_answer_is_named(authority, own, wire, answer) -> None:
    own.answer = answering(answer)
    assert trouble_of(sender(wire, authority[0]), read_url(own.url())) is DeliveryTrouble.BAD_ANSWER


def test_names_without_addresses_are_named(authority, wire) -> None:
    def resolve(_host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    sending = Sender(resolve, authority[0], connect=wire.connect)
    assert trouble_of(sending, read_url(f"https://{HOST}/")) is DeliveryTrouble.NAME_NOT_FOUND
