"""The kernel's answer to `ss -lt`."""

import socket
import struct
import sys

import pytest

from firmware_bridge.presence import kernel_sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sock_diag is Linux's")


@pytest.mark.parametrize(
    ("version", "family", "host"), [(4, socket.AF_INET, "127.0.0.1"), (6, socket.AF_INET6, "::1")]
)
def test_a_socket_is_listed_while_it_listens(version, family, host):
    with socket.socket(family) as server:
        server.bind((host, 0))
        port = server.getsockname()[1]
        assert port not in [found.port for found in kernel_sockets.listening(version)]
        server.listen()
        (found,) = [found for found in kernel_sockets.listening(version) if found.port == port]
        assert str(found.local) == host
        assert found.inode


def test_a_short_answer_and_a_length_that_cannot_be_are_no_sockets():
    with pytest.raises(OSError, match="short"):
        kernel_sockets.parse(b"\x02")
    assert list(kernel_sockets.messages(struct.pack("=IHHII", 4, 20, 0, 0, 0))) == []
    assert list(kernel_sockets.messages(b"\x00")) == []
