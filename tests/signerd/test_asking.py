"""A daemon that is mute, and one that drips for ever; ids that could lead elsewhere."""

import contextlib
import socket
import threading

import pytest

from signerd.asking import DaemonAddress, ask, segment
from signerd.client import DaemonClient
from signerd.endpoint import socket_path
from signerd.errors import DaemonFailed, InvalidRequest

MUTE = (b"", b"")
HEADERS = (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x")
BODY = (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" ")
LARGE = (b"HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n", b" " * (1 << 22))
PACKED = (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n", b" ")


@contextlib.contextmanager
def dripping(state, first, drop):
    over = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                drip(listening.accept()[0])

    def drip(line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            # The client's first connection only sees whether a process listens.
            if line.recv(65536):
                line.sendall(first)
                while not over.wait(0.01):
                    line.sendall(drop)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_path(state)))
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    return folder


def asked(state, seconds):
    with DaemonClient(state) as client:
        address = DaemonAddress.of_folder(state)
        client.run(ask(address, address.request("POST", "/session", seconds, body={})))


@pytest.mark.parametrize("how", [MUTE, HEADERS, BODY], ids=["mute", "headers", "body"])
def test_f_a_daemon_that_does_not_come_to_an_end_is_given_up(state, how):
    with dripping(state, *how), pytest.raises(DaemonFailed, match="in time"):
        asked(state, 0.3)


@pytest.mark.parametrize(
    ("how", "told"), [(LARGE, "more than 67,108,864 bytes"), (PACKED, "compressed")], ids=["large", "packed"]
)
def test_f_an_answer_that_could_fill_the_memory_is_not_read(state, how, told):
    with dripping(state, *how), pytest.raises(DaemonFailed, match=told):
        asked(state, 60)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "../session", "a/b", "a?b", "a#b", "%2e%2e", "a b", "a\r\nb", "é"]
)
def test_l10_an_id_that_could_lead_elsewhere_is_none(text):
    with pytest.raises(InvalidRequest, match="cannot be the id of anything"):
        segment(text)
