"""The user at the other end of a connection, from the kernel.

A Unix socket has its peer's credentials. For TCP the kernel is asked by addresses and ports (sock_diag(7)),
in some twenty microseconds whatever the number of connections; failing that, /proc/net/tcp and /proc/net/tcp6
are read.
"""

import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final, Protocol

from signerd.errors import SocketUnusable

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
# family, protocol, extensions, padding, states; then the socket's id: ports, addresses, interface, "any
# cookie"
_QUESTION: Final = struct.Struct("=BBBBI2s2s16s16sI8s")
_ANY_COOKIE: Final = b"\xff" * 8
# family, state, two timers; ports, addresses, interface and cookie; times and queues, owner, inode
_ANSWER: Final = struct.Struct("=BBBB2s2s16s16s12x12xII")
# The kernel answers at once or not at all.
_SECONDS: Final = 0.5
_BUFFER: Final = 1 << 14
# Linux's numbers of the two address families, which the `socket` of another system does not have.
_FAMILIES: Final = {4: 2, 6: 10}


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
    if sys.platform != "linux":
        raise OSError("netlink exists on Linux only")
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
    """Raises OSError for an answer of another form or about another connection."""
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
    # For a socket that no process holds any more (inode 0), the kernel may report root.
    return int(uid) if state == ESTABLISHED and inode != 0 else None


def _require_no_such(fault: int) -> None:
    """Raises OSError for every fault but ENOENT, "no such socket"."""
    if fault != errno.ENOENT:
        raise OSError(fault, "the kernel does not tell whose socket it is")


TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_WORD = 4
# Columns: number, local and remote address, state, queues, timer, retransmissions, uid, timeout, inode.
_NEAR, _FAR, _STATE, _OWNER, _INODE = 1, 2, 3, 7, 9


def owner_by_table(ends: Ends) -> int | None:
    """As ``owner_by_netlink``. Raises OSError where neither table can be read."""
    found, read = set(), False
    for table in TABLES:
        try:
            text = table.read_text("ascii")
        except FileNotFoundError:
            continue
        read = True
        found |= owners(text, ends)
    if not read:
        raise OSError("this system has no table of its connections")
    return found.pop() if len(found) == 1 else None


def owners(table: str, ends: Ends) -> set[int]:
    """The users of the established sockets with exactly these ends. A malformed line is skipped."""
    port = f":{ends.near_port:04X}"
    lines = (line.split() for line in table.splitlines()[1:] if port in line)
    return {int(fields[_OWNER]) for fields in lines if _is(fields, ends)}


def _is(fields: list[str], ends: Ends) -> bool:
    try:
        held = (
            int(fields[_STATE], 16) == ESTABLISHED and int(fields[_INODE]) != 0 and int(fields[_OWNER]) >= 0
        )
        near, far = _end(fields[_NEAR]), _end(fields[_FAR])
    except (IndexError, ValueError):
        return False
    return held and (near, far) == ((ends.near, ends.near_port), (ends.far, ends.far_port))


def _end(text: str) -> tuple[Address, int]:
    digits, _colon, port = text.partition(":")
    return plain_address(_address(bytes.fromhex(digits))), int(port, 16)


def _address(words: bytes) -> Address:
    """The kernel prints each four-byte word in the machine's byte order."""
    if sys.byteorder == "little":
        words = b"".join(words[at : at + _WORD][::-1] for at in range(0, len(words), _WORD))
    return ip_address(words)


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


class Connection(Protocol):
    """The part of a Unix socket needed to ask for its peer."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


class Accepted(Protocol):
    """The part of an accepted TCP connection needed to ask for its peer."""

    def getsockname(self) -> Any: ...
    def getpeername(self) -> Any: ...


def peer_uid(connection: Connection, platform: str = sys.platform) -> int:
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


def far_ends(accepted: Accepted) -> Ends:
    """The connection as seen from its other end. Raises OSError where it is closed already."""
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
