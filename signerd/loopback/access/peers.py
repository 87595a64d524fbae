"""The user at the other end of a connection, from the kernel.

A Unix socket has its peer's credentials. For TCP the kernel is asked by addresses and ports (sock_diag(7)),
in some twenty microseconds whatever the number of connections; failing that, /proc/net/tcp and /proc/net/tcp6
are read.
"""

import contextlib
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Protocol

from firmware_bridge.presence import kernel_sockets
from firmware_bridge.presence.kernel_sockets import ESTABLISHED, Address, InetSocket, inet_sockets
from signerd.errors import SocketUnusable


@dataclass(frozen=True)
class Ends:
    """A TCP connection as seen from its ``near`` end."""

    near: Address
    near_port: int
    far: Address
    far_port: int


def owner_by_netlink(ends: Ends) -> int | None:
    """The user of the near end's socket where it is established and a process holds it; else None.

    Raises OSError where this kernel does not answer.
    """
    found = kernel_sockets.connection(ends.near, ends.near_port, ends.far, ends.far_port)
    return None if found is None else _owner(found)


def _owner(found: InetSocket) -> int | None:
    """The kernel may report root for a socket that no process holds any more."""
    return found.uid if found.state == ESTABLISHED and found.inode != 0 else None


TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def owner_by_table(ends: Ends) -> int | None:
    """As ``owner_by_netlink``. Raises OSError where neither table can be read."""
    tables = [table.read_text("ascii") for table in TABLES if table.exists()]
    if not tables:
        raise OSError("this system has no table of its connections")
    sockets = (one for table in tables for one in inet_sockets(table, [ends.near_port]) if _is(one, ends))
    found = {_owner(one) for one in sockets} - {None}
    return found.pop() if len(found) == 1 else None


def _is(found: InetSocket, ends: Ends) -> bool:
    near, far = plain_address(found.local), plain_address(found.remote)
    return Ends(near, found.port, far, found.remote_port) == ends


def plain_address(address: Address) -> Address:
    """The IPv4 address of an IPv4-mapped IPv6 address; any other unchanged."""
    mapped = address.ipv4_mapped if address.version == 6 else None
    return address if mapped is None else mapped


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


class UnixSocket(Protocol):
    """The part of a Unix socket needed to ask for its peer."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


class TcpSocket(Protocol):
    """The part of an accepted TCP connection needed to ask for its peer."""

    def getsockname(self) -> Any: ...
    def getpeername(self) -> Any: ...


def peer_uid(connection: UnixSocket, platform: str = sys.platform) -> int:
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


def far_ends(accepted: TcpSocket) -> Ends:
    """The connection as seen from its other end. Raises OSError where it is closed already."""
    (far, far_port), (near, near_port) = _name(accepted.getsockname()), _name(accepted.getpeername())
    return Ends(near, near_port, far, far_port)


def _name(name: Any) -> tuple[Address, int]:
    return plain_address(ip_address(name[0])), int(name[1])


def whose_by(owner: Callable[[Ends], int | None]) -> Whose:
    def whose(accepted: TcpSocket) -> int | None:
        try:
            return owner(far_ends(accepted))
        except OSError:
            return None

    return whose


def teller(host: str, uid: int) -> Whose | None:
    """The first of the two ways that names our own user for a connection to ourselves at ``host``; None where
    neither does.
    """
    for owner in (owner_by_netlink, owner_by_table):
        whose = whose_by(owner)
        with contextlib.suppress(OSError, AttributeError):
            if _of_our_own(whose, host) == uid:
                return whose
    return None


def _of_our_own(whose: Whose, host: str) -> int | None:
    with socket.create_server((host, 0), family=_family(host), backlog=1) as listening:
        listening.settimeout(_OWN_CONNECTION_SECONDS)
        with socket.create_connection(listening.getsockname()[:2], _OWN_CONNECTION_SECONDS) as _ours:
            accepted, _name = listening.accept()
            with accepted:
                return whose(accepted)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
