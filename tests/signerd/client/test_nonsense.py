"""The client's side: no daemon, a dead one, a mute one, and one that talks nonsense."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from signerd.client import DaemonClient
from signerd.endpoint import socket_path
from signerd.errors import DaemonFailed, DaemonNotRunning, InvalidRequest, UnsafeFolder


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def answering(state, answer: bytes | None) -> Iterator[None]:
    """A server that gives everybody the same bytes; None: it listens and says nothing."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_path(state)))
        listening.listen()
        taken: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    caller, _ = listening.accept()
                except OSError:
                    return
                taken.append(caller)
                heard = caller.recv(65536)
                # The client's first connection only sees whether anybody is there.
                if heard and answer is not None:
                    caller.sendall(answer)
                    caller.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for caller in taken:
                caller.close()


def http(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_no_daemon(state):
    with pytest.raises(DaemonNotRunning) as missing:
        DaemonClient(state)
    assert "signerd run" in missing.value.hint


def test_the_socket_of_a_dead_daemon(state):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(socket_path(state)))
    with pytest.raises(DaemonNotRunning):
        DaemonClient(state)


def test_l12_nothing_is_sent_into_a_folder_that_others_can_enter(state):
    with answering(state, http(b"{}")):
        state.chmod(0o777)
        with pytest.raises(UnsafeFolder):
            DaemonClient(state)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        http(b"{}"),
        http(b"[]"),
        http(b"not json"),
        http(b"\xff\xfe"),
        http(b'{"version": 1}'),
        http(b"<html>", "500 Oops", "text/html"),
        http(b"[1]", "500 Oops"),
        http(b"{}", "500 Oops"),
        http(b"", "302 Found"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
    ],
)
def test_nonsense_is_named_as_such(state, answer):
    with answering(state, answer), DaemonClient(state) as client, pytest.raises(DaemonFailed):
        client.status()


@pytest.mark.parametrize(
    "events",
    [
        b'id: 1\nevent: happened\ndata: {"number": "x"}\n\n',
        b"data: not json\n\n",
    ],
)
def test_a_nonsensical_event_is_named_as_such(state, events):
    answer = http(events, kind="text/event-stream")
    with (
        answering(state, answer),
        DaemonClient(state) as client,
        client.follow() as lines,
        pytest.raises(DaemonFailed),
    ):
        list(lines)


def test_a_stream_that_breaks_off_is_an_error_and_not_an_end(state):
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n: still here\n\n"
    with (
        answering(state, answer),
        DaemonClient(state) as client,
        client.follow() as lines,
        pytest.raises(DaemonFailed),
    ):
        list(lines)


def test_neither_a_proxy_nor_a_redirect_takes_the_words_elsewhere(state, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    moved = b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with answering(state, moved), DaemonClient(state) as client, pytest.raises(DaemonFailed):
        client.sign_in("a@example.org", "secret")


@pytest.mark.parametrize(
    "psbt_id", ["", "..", "x/approve", "x?y=1", "x#z", "x%2Fy", "x y", "x\n", "x\r\nHost: evil", "x" * 101]
)
def test_an_id_cannot_leave_its_place_in_the_path(state, psbt_id):
    with answering(state, http(b"{}")), DaemonClient(state) as client:
        for call in (client.proposal, client.reject):
            with pytest.raises(InvalidRequest):
                call(psbt_id)
