"""The kernel's socket tables."""

import errno
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.presence import kernel_sockets
from firmware_bridge.presence.kernel_sockets import ESTABLISHED, inet_sockets

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
little = pytest.mark.skipif(sys.byteorder != "little", reason="the lines are of a little-endian machine")


def line(local, remote="00000000:0000", state=0x0A, inode=6539):
    return (
        f" 9: {local} {remote} {state:02X} 00000000:00000000 00:00000000 00000000  1000  0 {inode} 2 0000 0\n"
    )


@little
def test_a_socket_is_read_whole():
    table = HEAD + line("0100007F:9C40", "0100007F:534C", ESTABLISHED, 77)
    (found,) = inet_sockets(table, [0x534C])
    assert (str(found.local), found.port) == ("127.0.0.1", 40000)
    assert (str(found.remote), found.remote_port) == ("127.0.0.1", 0x534C)
    assert (found.state, found.uid, found.inode) == (ESTABLISHED, 1000, 77)


def test_other_ports_are_passed_over():
    assert inet_sockets(HEAD + line("0100007F:534C"), [0x534D]) == []


@given(st.text())
def test_a_malformed_table_has_no_sockets_and_raises_nothing(text):
    inet_sockets(HEAD + text, [0x534C])
    inet_sockets(HEAD + f"0: {text}:534C {text} 0A a b c d e f g", [0x534C])


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sock_diag is Linux's")


def answer(near: int = 40_000) -> bytes:
    ports = near.to_bytes(2), (17_707).to_bytes(2)
    body = struct.pack("=BBBB2s2s16s16s12x12xII", 2, ESTABLISHED, 0, 0, *ports, b"", b"", 1000, 5)
    return struct.pack("=IHHII", 16 + len(body), 20, 0, 0, 0) + body


def fault(number: int) -> bytes:
    return struct.pack("=IHHII", 36, 2, 0, 0, 0) + struct.pack("=i", -number) + bytes(16)


def test_an_answer_about_one_connection_is_read():
    found = kernel_sockets.the_one(answer(), 40_000, 17_707)
    assert (found.state, found.uid, found.inode) == (ESTABLISHED, 1000, 5)
    assert kernel_sockets.the_one(fault(errno.ENOENT), 40_000, 17_707) is None


@pytest.mark.parametrize(
    "given",
    [b"", b"\0", bytes(40), answer()[:60], answer(near=40_001), fault(errno.EPERM), fault(errno.EOPNOTSUPP)],
    ids=range(7),
)
def test_a_malformed_answer_is_about_no_connection(given):
    with pytest.raises(OSError):
        kernel_sockets.the_one(given, 40_000, 17_707)
