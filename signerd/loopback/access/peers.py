"""The user at the other end of a connection, from the kernel.

A Unix socket has its peer's credentials. For TCP the kernel is asked by addresses and ports (sock_diag(7)),
in some twenty microseconds whatever the number of connections. Asking sends nothing to any program.
"""

import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from signerd.endpoint import IPV4
from signerd.errors import SocketUnusable

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Ends:
    """A TCP connection as seen from its ``near`` end."""

    near: Address
    near_port: int
    far: Address
    far_port: int


# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, include/net/tcp_states.h
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 0x1
_ANY_STATE: Final = 0xFFFFFFFF
_ESTABLISHED: Final = 0x01
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


def owner_by_netlink(ends: Ends) -> int | None:
    """The user of the near end's socket where it is established and a process holds it; else None.

    Raises OSError where this kernel does not answer, or not about this connection.
    """
    if sys.platform != "linux":
        raise OSError("netlink needs Linux")
    ports = ends.near_port.to_bytes(2), ends.far_port.to_bytes(2)
    body = _QUESTION.pack(
        _FAMILIES[ends.near.version],
        socket.IPPROTO_TCP,
        0,
        0,
        _ANY_STATE,
        *ports,
        ends.near.packed,
        ends.far.packed,
        _ANY_COOKIE,
    )
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(head + body)
        return owner_in(kernel.recv(_BUFFER), ends)


def owner_in(answer: bytes, ends: Ends) -> int | None:
    """As ``owner_by_netlink``. Raises OSError for an answer of another form."""
    body = answer[_HEADER.size :]
    if len(body) < _FAULT.size:
        raise OSError("an answer of sock_diag is too short")
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR and body[: _FAULT.size] == _FAULT.pack(-errno.ENOENT):
        return None
    if kind != _SOCK_DIAG_BY_FAMILY or len(body) < _ANSWER.size:
        raise OSError("the kernel does not report this connection")
    _family, state, _, _, near, far, _local, _remote, uid, inode = _ANSWER.unpack_from(body)
    if (near, far) != (ends.near_port.to_bytes(2), ends.far_port.to_bytes(2)):
        raise OSError("an answer of sock_diag is about another connection")
    # The kernel may report root for a socket that no process holds any more.
    return int(uid) if state == _ESTABLISHED and inode != 0 else None


_PEER_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
# sys/un.h and sys/ucred.h of macOS. struct xucred: version, user, count of groups, groups.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED: Final = struct.Struct("=IIh2x16I")
_XUCRED_VERSION: Final = 0
# For a connection to ourselves, which is accepted at once.
_OWN_CONNECTION_SECONDS = 1.0

# The user at the other end of an accepted connection; None where the kernel names none.
Whose = Callable[[Any], int | None]


def peer_uid(connection: socket.socket, platform: str = sys.platform) -> int:
    """The user of the process at the other end of a Unix socket. Raises SocketUnusable."""
    if platform == "darwin":
        return _by_xucred(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    if not hasattr(socket, "SO_PEERCRED"):
        raise SocketUnusable("this system does not report the user at the other end of a socket")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    _pid, uid, _gid = _PEER_CREDENTIALS.unpack(packed)
    return int(uid)


def _by_xucred(packed: bytes) -> int:
    """Raises SocketUnusable for an answer of another form."""
    if len(packed) != _XUCRED.size:
        raise SocketUnusable(f"the peer's credentials are {len(packed)} bytes, not {_XUCRED.size}")
    version, uid, *_groups = _XUCRED.unpack(packed)
    if version != _XUCRED_VERSION:
        raise SocketUnusable(f"the peer's credentials have version {version}")
    return int(uid)


def far_ends(accepted: socket.socket) -> Ends:
    """The connection as seen from its other end. Raises OSError where it is closed already."""
    # Neither is an IPv4-mapped address: our sockets of IPv6 speak it alone (``listening``).
    (far, far_port, *_), (near, near_port, *_) = accepted.getsockname(), accepted.getpeername()
    return Ends(ip_address(near), int(near_port), ip_address(far), int(far_port))


def whose_by(owner: Callable[[Ends], int | None]) -> Whose:
    def whose(accepted: socket.socket) -> int | None:
        try:
            return owner(far_ends(accepted))
        except OSError:
            return None

    return whose


def teller(uid: int) -> Whose | None:
    """What names the user of a connection; None where it does not name our own, ``uid``, for one to
    ourselves.
    """
    whose, seconds = whose_by(owner_by_netlink), _OWN_CONNECTION_SECONDS
    with (
        contextlib.suppress(OSError, AttributeError),
        socket.create_server((IPV4, 0), backlog=1) as listening,
    ):
        listening.settimeout(seconds)
        with socket.create_connection(listening.getsockname(), seconds), listening.accept()[0] as accepted:
            return whose if whose(accepted) == uid else None
    return None
