"""The kernel's lists of the TCP connections on this machine, `/proc/net/tcp` and `tcp6`, and sock_diag(7) for
a single one. Reading them sends nothing to any program.
"""

import errno
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

Address = IPv4Address | IPv6Address

# include/net/tcp_states.h
ESTABLISHED: Final = 0x01
_WORD: Final = 4


@dataclass(frozen=True)
class InetSocket:
    """One TCP socket. `inode` is the number in the links of its owner's descriptors. If it is 0, no
    process holds the socket, and `uid` may be root's.
    """

    local: Address
    port: int
    remote: Address
    remote_port: int
    state: int
    uid: int
    inode: int


def inet_sockets(table: str, ports: Iterable[int]) -> list[InetSocket]:
    """The sockets of a table with one of these ports at either end. Malformed lines are ignored."""
    endings = tuple(f":{port:04X}" for port in ports)
    found: list[InetSocket] = []
    if not any(ending in table for ending in endings):
        return found
    for line in table.splitlines()[1:]:
        fields = line.split(maxsplit=10)
        if len(fields) > 9 and (fields[1].endswith(endings) or fields[2].endswith(endings)):
            socket = _inet_socket(fields)
            if socket is not None:
                found.append(socket)
    return found


def _inet_socket(fields: Sequence[str]) -> InetSocket | None:
    try:
        local, port = _end(fields[1])
        remote, remote_port = _end(fields[2])
        state, uid, inode = int(fields[3], 16), int(fields[7]), int(fields[9])
        return InetSocket(local, port, remote, remote_port, state, uid, inode)
    except ValueError:
        return None


def _end(text: str) -> tuple[Address, int]:
    digits, _colon, port = text.partition(":")
    return _address(bytes.fromhex(digits)), int(port, 16)


def _address(words: bytes) -> Address:
    """The kernel prints each word as a number in this machine's byte order."""
    if sys.byteorder == "little":
        words = b"".join(words[at : at + _WORD][::-1] for at in range(0, len(words), _WORD))
    return ip_address(words)


# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 0x1
_ANY_STATE: Final = 0xFFFFFFFF
_ERROR: Final = 2
_HEADER: Final = struct.Struct("=IHHII")
_FAULT: Final = struct.Struct("=i")
# family, protocol, extensions, padding, states; then the socket's id: ports, addresses, interface, "any
# cookie"
_QUESTION: Final = struct.Struct("=BBBBI2s2s16s16s4x8s")
_ANY_COOKIE: Final = b"\xff" * 8
# family, state, two timers; source and destination port, source, destination, interface, cookie; times,
# queues, owner, inode
_ANSWER: Final = struct.Struct("=BBBB2s2s16s16s12x12xII")
_SECONDS: Final = 0.5
_BUFFER: Final = 1 << 16
# Linux's numbers of the two address families.
_FAMILIES: Final = {4: 2, 6: 10}


def connection(near: Address, near_port: int, far: Address, far_port: int) -> InetSocket | None:
    """The TCP socket at the near end of this connection; None if there is none.

    :raises OSError: this kernel does not answer, or not about this.
    """
    if sys.platform != "linux":
        raise OSError("netlink needs Linux")
    ports = near_port.to_bytes(2), far_port.to_bytes(2)
    body = _QUESTION.pack(
        _FAMILIES[near.version],
        socket.IPPROTO_TCP,
        0,
        0,
        _ANY_STATE,
        *ports,
        near.packed,
        far.packed,
        _ANY_COOKIE,
    )
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(head + body)
        return the_one(kernel.recv(_BUFFER), near_port, far_port)


def the_one(answer: bytes, port: int, remote_port: int) -> InetSocket | None:
    """The socket of an answer about a single one. Raises OSError for an answer of another form."""
    body = answer[_HEADER.size :]
    if len(body) < _FAULT.size:
        raise OSError("an answer of sock_diag is too short")
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR and body[: _FAULT.size] == _FAULT.pack(-errno.ENOENT):
        return None
    if kind != _SOCK_DIAG_BY_FAMILY or len(body) < _ANSWER.size:
        raise OSError("the kernel does not report this connection")
    family, state, _, _, near, far, local, remote, uid, inode = _ANSWER.unpack_from(body)
    if (near, far) != (port.to_bytes(2), remote_port.to_bytes(2)):
        raise OSError("an answer of sock_diag is about another connection")
    ends = _packed_address(family, local), port, _packed_address(family, remote), remote_port
    return InetSocket(*ends, state, uid, inode)


def _packed_address(family: int, packed: bytes) -> Address:
    return IPv4Address(packed[:4]) if family == _FAMILIES[4] else IPv6Address(packed)
