"""Whose connection it is, by the kernel's word and nobody else's (L12)."""

import contextlib
import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Protocol

from signerd.errors import SocketUnusable
from signerd.loopback.access import proc_net, sock_diag
from signerd.loopback.access.proc_net import plain_address
from signerd.loopback.access.sock_diag import Address, Ends

_PEER_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
# A connection to ourselves, which waits for nobody.
_OWN_CONNECTION_SECONDS = 1.0

# The user at the other end of an accepted connection; None: nobody can be named.
Whose = Callable[[Any], int | None]


class Connection(Protocol):
    """What of a Unix socket is needed to ask for its peer."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


class Accepted(Protocol):
    """What of an accepted TCP connection is needed to ask for its peer."""

    def getsockname(self) -> Any: ...
    def getpeername(self) -> Any: ...


def peer_uid(connection: Connection) -> int:
    """The user who runs the program on the other side of a Unix socket. Raises SocketUnusable."""
    if not hasattr(socket, "SO_PEERCRED"):
        raise SocketUnusable("this system does not say who is on the other side of a socket")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    _pid, uid, _gid = _PEER_CREDENTIALS.unpack(packed)
    return int(uid)


def far_ends(accepted: Accepted) -> Ends:
    """The connection as the program at its other end sees it. Raises OSError where it is over already."""
    (far, far_port), (near, near_port) = _name(accepted.getsockname()), _name(accepted.getpeername())
    return Ends(near, near_port, far, far_port)


def _name(name: Any) -> tuple[Address, int]:
    return plain_address(ip_address(name[0])), int(name[1])


def whose_by(owner: Callable[[Ends], int | None]) -> Whose:
    def whose(accepted: Accepted) -> int | None:
        try:
            return owner(far_ends(accepted))
        except OSError:
            return None

    return whose


def teller(host: str, uid: int) -> Whose | None:
    """How to learn here who calls at this address: the first way that names ourselves for a connection of our own. None: there is none."""
    for owner in (sock_diag.owner, proc_net.owner):
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
