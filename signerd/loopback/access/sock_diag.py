"""Whose socket it is at one end of a TCP connection, asked of the kernel by the connection's four numbers (sock_diag(7)).

A question costs some twenty microseconds, whatever the number of connections; it goes to the kernel, and to nobody else.
"""

import errno
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

Address = IPv4Address | IPv6Address

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, net/tcp_states.h
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ERROR: Final = 2
ESTABLISHED: Final = 1
_ANY_STATE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_FAULT: Final = struct.Struct("=i")
# family, protocol, extensions, padding, states; then the socket's id: ports, addresses, interface, "any cookie"
_QUESTION: Final = struct.Struct("=BBBBI2s2s16s16sI8s")
_ANY_COOKIE: Final = b"\xff" * 8
# family, state, two timers; ports, addresses, interface and cookie; times and queues, owner, inode
_ANSWER: Final = struct.Struct("=BBBB2s2s16s16s12x12xII")
# It is the kernel who answers, at once or not at all.
_SECONDS: Final = 0.5
_BUFFER: Final = 1 << 14
# What Linux calls the two families, whatever this build of Python was given.
_FAMILIES: Final = {4: 2, 6: 10}


@dataclass(frozen=True)
class Ends:
    """A TCP connection as the program at its ``near`` end sees it."""

    near: Address
    near_port: int
    far: Address
    far_port: int


def owner(ends: Ends) -> int | None:
    """The user of the socket at the near end, where it is connected and somebody holds it; else None.

    Raises OSError where this kernel does not answer the question.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(question(ends))
        return parse(kernel.recv(_BUFFER), ends)


def question(ends: Ends) -> bytes:
    body = _QUESTION.pack(
        _FAMILIES[ends.near.version],
        socket.IPPROTO_TCP,
        0,
        0,
        _ANY_STATE,
        ends.near_port.to_bytes(2),
        ends.far_port.to_bytes(2),
        ends.near.packed,
        ends.far.packed,
        0,
        _ANY_COOKIE,
    )
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0) + body


def parse(answer: bytes, ends: Ends) -> int | None:
    """Raises OSError for an answer of another form than ours, or about another connection."""
    if len(answer) < _HEADER.size + _FAULT.size:
        raise OSError("an answer of sock_diag is too short")
    _size, kind, _flags, _sequence, _sender = _HEADER.unpack_from(answer)
    if kind == _ERROR:
        _require_no_such(-_FAULT.unpack_from(answer, _HEADER.size)[0])
        return None
    if kind != _SOCK_DIAG_BY_FAMILY or len(answer) < _HEADER.size + _ANSWER.size:
        raise OSError("an answer of sock_diag has another form")
    _family, state, _, _, near, far, _near, _far, uid, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    if (int.from_bytes(near), int.from_bytes(far)) != (ends.near_port, ends.far_port):
        raise OSError("an answer of sock_diag is about another connection")
    # Of a socket that nobody holds any more the kernel may say that it is root's.
    return int(uid) if state == ESTABLISHED and inode != 0 else None


def _require_no_such(fault: int) -> None:
    """Raises OSError for any other fault than that there is no such socket."""
    if fault != errno.ENOENT:
        raise OSError(fault, "the kernel does not tell whose socket it is")
