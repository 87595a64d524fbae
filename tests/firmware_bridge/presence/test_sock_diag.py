"""The kernel's answer to `ss -lt`."""

import socket
import struct
import sys

import pytest

from firmware_bridge.presence import sock_diag

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sock_diag is Linux's")


@pytest.mark.parametrize(
    ("version", "family", "host"), [(4, socket.AF_INET, "127.0.0.1"), (6, socket.AF_INET6, "::1")]
)
def test_a_socket_is_listed_while_it_listens(version, family, host):
    with socket.socket(family) as server:
        server.bind((host, 0))
        port = server.getsockname()[1]
        assert port not in [found.port for found in sock_diag.listening(version)]
        server.listen()
        (found,) = [found for found in sock_diag.listening(version) if found.port == port]
        assert str(found.local) == host
        assert found.inode


def test_a_short_answer_and_a_length_that_cannot_be_are_no_sockets():
    with pytest.raises(OSError, match="short"):
        sock_diag.parse(b"\x02")
    assert list(sock_diag.messages(struct.pack("=IHHII", 4, 20, 0, 0, 0))) == []
    assert list(sock_diag.messages(b"\x00")) == []
