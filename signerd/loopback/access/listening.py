"""The listening sockets: the private one in the state folder, and TCP at the two loopback addresses (L12)."""

import contextlib
import errno
import os
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from custody.common.private_files import PRIVATE_FILE
from signerd.endpoint import IPV4, require_own_socket, socket_path, taken_by
from signerd.errors import SocketUnusable, UnsafeFolder
from signerd.journal.storage import make_private
from signerd.loopback.access.peers import Whose, teller

# sun_path has 108 bytes on Linux and 104 on macOS, with a final zero byte.
MAX_SOCKET_PATH = 103
BACKLOG = 64
UNIX_TABLE = Path("/proc/net/unix")
# linux/net.h, __SO_ACCEPTCON
_ACCEPTS = 0x10000
_UNIT = "Use the socket unit that `signerd service install` writes, or stop it: `signerd service stop`."
_SERVICE = "Start the service, `signerd service start`; or free the socket first, `signerd service stop`."


@contextlib.contextmanager
def private_socket(state: Path, handed: socket.socket | None = None) -> Iterator[socket.socket]:
    """A listening socket of mode 0600 in the private state folder, which the caller holds; removed at the
    end.

    ``handed``: this socket as opened by the service manager, which keeps its file.

    Raises:
        UnsafeFolder: others have access to the folder or to the file at the socket's path. SocketUnusable: it
            cannot be created here, or another one was passed.
    """
    make_private(state)
    path = socket_path(state)
    if handed is not None:
        with handed:
            _require_ours(handed, path)
            yield handed
        return
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise SocketUnusable(
            f"{path} is longer than the {MAX_SOCKET_PATH} bytes that a socket's path may have"
        )
    _remove_leftover(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            # The file is created with the socket's mode, and so is never open to others. macOS refuses
            # (fchmod(2), EINVAL); the folder is private.
            os.fchmod(listening.fileno(), PRIVATE_FILE)
        listening.bind(str(path))
        path.chmod(PRIVATE_FILE)
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError as error:
        listening.close()
        raise SocketUnusable(f"{path} cannot be created: {error.strerror}") from error
    try:
        yield listening
    finally:
        listening.close()
        path.unlink(missing_ok=True)


def _require_ours(handed: socket.socket, path: Path) -> None:
    """Raises UnsafeFolder, SocketUnusable."""
    kind = (handed.family, handed.type)
    listens = kind == (socket.AF_UNIX, socket.SOCK_STREAM) and handed.getsockopt(
        socket.SOL_SOCKET, socket.SO_ACCEPTCONN
    )
    if not listens or os.path.realpath(handed.getsockname()) != os.path.realpath(path):
        raise SocketUnusable(f"the service manager passes another socket than {path}", hint=_UNIT)
    try:
        status = path.lstat()
    except FileNotFoundError:
        raise SocketUnusable(f"{path} of the service manager was removed", hint=_UNIT) from None
    require_own_socket(path, status)
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise UnsafeFolder(
            f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):o})", hint=_UNIT
        )
    handed.setblocking(False)  # noqa: FBT003 - the standard library's signature


def _remove_leftover(path: Path) -> None:
    """Remove the socket of a killed daemon. Anything else at its path is not removed."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    require_own_socket(path, status)
    if _is_listened_to(path):
        # The caller holds the folder, so the listener is not a daemon but its service manager.
        raise SocketUnusable(f"the service manager listens at {path}", hint=_SERVICE)
    path.unlink()


def _is_listened_to(path: Path) -> bool:
    """False where the system has no such table; it has no service manager that passes sockets either."""
    try:
        table = UNIX_TABLE.read_text(errors="surrogateescape")
    except OSError:
        return False
    # Its columns: number, references, protocol, flags, type, state, inode, path (proc(5)).
    rows = (line.split(maxsplit=7) for line in table.splitlines()[1:])
    return any(row[7:] == [str(path)] and int(row[3], 16) & _ACCEPTS for row in rows)


IPV6 = "::1"
# A port that is free at the first address may be taken at the second; then another one is tried.
TRIES = 8

TAKEN = (
    "The page is not served: port {port} of this machine is taken by {by}. "
    "Stop that program, or set another port in the configuration ([loopback] port), and start signerd again."
)
UNTOLD = "The page is not served: this system does not report which user a TCP connection belongs to."
NO_IPV6 = f"This machine has no IPv6: the page is served at {IPV4} only."
REFUSED = "The page is not served: signerd cannot listen on the port ({reason})."


@dataclass(frozen=True)
class Listening:
    """``sockets``: empty where nothing is served over TCP; ``notes`` say why."""

    sockets: tuple[socket.socket, ...] = ()
    port: int | None = None
    whose: Whose | None = None
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def listening_ports(port: int) -> Iterator[Listening]:
    """Listen at both addresses on this port, or, for 0, on a free one. Raises nothing where that is
    impossible: the private socket is served without it.
    """
    listeners = _listening(port)
    try:
        yield listeners
    finally:
        for one in listeners.sockets:
            one.close()


def _listening(port: int) -> Listening:
    whose = teller(os.getuid())
    if whose is None:
        return Listening(notes=(UNTOLD,))
    try:
        sockets = _both(port)
    except OSError as error:
        taken = error.errno in {errno.EADDRINUSE, errno.EACCES}
        note = TAKEN.format(port=port, by=taken_by(port)) if taken else REFUSED.format(reason=error.strerror)
        return Listening(notes=(note,))
    notes = () if len(sockets) > 1 else (NO_IPV6,)
    return Listening(sockets, sockets[0].getsockname()[1], whose, notes)


def _both(port: int) -> tuple[socket.socket, ...]:
    """Both or neither: at one address `localhost` could reach another program. Raises OSError."""
    for left in reversed(range(TRIES)):
        first = _bound(socket.AF_INET, IPV4, port)
        try:
            second = _second(first.getsockname()[1])
        except OSError as error:
            first.close()
            if port == 0 and left and error.errno == errno.EADDRINUSE:
                continue
            raise
        return (first,) if second is None else (first, second)
    raise AssertionError("unreachable")


def _second(port: int) -> socket.socket | None:
    """None where this machine has no IPv6. Raises OSError."""
    try:
        return _bound(socket.AF_INET6, IPV6, port)
    except OSError as error:
        if error.errno in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
            return None
        raise


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # With SO_REUSEADDR: a restarted daemon gets its port back despite old connections in TIME_WAIT.
    made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    # asyncio sets TCP_NODELAY only where the protocol is given; without it each answer takes 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, made.detach())
    listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return listening
