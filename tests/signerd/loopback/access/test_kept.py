"""L11: a connection that had an answer is kept for a moment, and not for one who begins a request and never
ends it.
"""

import contextlib
import socket

from signerd.loopback import serve
from tests.support.ported import PATIENCE_SECONDS, ported

END = b'"code":"not-paired"'


def answered(raw: socket.socket, head: bytes, end: bytes) -> None:
    raw.sendall(head)
    found = b""
    while end not in found:
        part = raw.recv(65536)
        assert part, found
        found += part


def ended(raw: socket.socket) -> bool:
    """Raises TimeoutError where it is not."""
    with contextlib.suppress(ConnectionResetError):
        return raw.recv(1) == b""
    return True


def test_l11_a_kept_connection_without_a_further_request_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.2)
    with ported(tmp_path / "s") as port:
        head = f"GET /v1/devices HTTP/1.1\r\nHost: {port.host}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", port.number), PATIENCE_SECONDS) as raw:
            answered(raw, head, END)
            raw.sendall(b"GET / HTT")
            assert ended(raw)


def test_requests_that_come_in_pieces_on_a_kept_connection_are_answered(tmp_path):
    with ported(tmp_path / "s") as port:
        head = f"GET /v1/devices HTTP/1.1\r\nHost: {port.host}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", port.number), PATIENCE_SECONDS) as raw:
            for _ in range(3):
                raw.sendall(head[:9])
                answered(raw, head[9:], END)
