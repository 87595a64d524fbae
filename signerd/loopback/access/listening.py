"""What the daemon listens on: the private socket in the state folder, and the TCP port on this machine's own
two addresses (L12).
"""

import contextlib
import errno
import os
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from custody.private_files import PRIVATE_FILE
from signerd.endpoint import IPV4, require_own_socket, socket_path, taken_by
from signerd.errors import SocketUnusable, UnsafeFolder
from signerd.journal.storage import make_private
from signerd.keyed_port import KeyedPort
from signerd.loopback.access.peers import Whose, teller

# sockaddr_un's sun_path is 108 bytes on Linux and 104 on macOS, with its closing zero.
MAX_SOCKET_PATH = 103
BACKLOG = 64
UNIX_TABLE = Path("/proc/net/unix")
# linux/net.h, __SO_ACCEPTCON
_ACCEPTS = 0x10000
_UNIT = "Take the socket unit as `signerd service install` writes it, or stop it: `signerd service stop`."
_SERVICE = "Start signerd there, `signerd service start`; or free the socket first, `signerd service stop`."


@contextlib.contextmanager
def private_socket(state: Path, handed: socket.socket | None = None) -> Iterator[socket.socket]:
    """A listening socket of mode 0600 in the private state folder, which the caller holds; removed at the
    end.

    ``handed``: that very socket, where the service manager opened it; its file is the manager's, and stays.

    Raises:
        UnsafeFolder: the folder, or what is in the socket's place, is not ours alone. SocketUnusable: it
            cannot be made here, or another one was handed over.
    """
    if sys.platform == "win32":
        raise SocketUnusable("this system has no Unix sockets: the daemon uses a keyed port")
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
            # It gives the file the mode of the socket: never open to others, not even for a moment. macOS
            # refuses (fchmod(2), EINVAL); the folder is private.
            os.fchmod(listening.fileno(), PRIVATE_FILE)
        listening.bind(str(path))
        path.chmod(PRIVATE_FILE)
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError as error:
        listening.close()
        raise SocketUnusable(f"{path} cannot be made: {error.strerror}") from error
    try:
        yield listening
    finally:
        listening.close()
        path.unlink(missing_ok=True)


def _require_ours(handed: socket.socket, path: Path) -> None:
    """Raises UnsafeFolder, SocketUnusable."""
    if sys.platform == "win32":
        raise SocketUnusable("this system has no Unix sockets: the daemon uses a keyed port")
    kind = (handed.family, handed.type)
    listens = kind == (socket.AF_UNIX, socket.SOCK_STREAM) and handed.getsockopt(
        socket.SOL_SOCKET, socket.SO_ACCEPTCONN
    )
    if not listens or os.path.realpath(handed.getsockname()) != os.path.realpath(path):
        raise SocketUnusable(f"the service manager hands over another socket than {path}", hint=_UNIT)
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise SocketUnusable(f"{path} was removed under the service manager", hint=_UNIT) from None
    require_own_socket(path, found)
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise UnsafeFolder(
            f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o})", hint=_UNIT
        )
    handed.setblocking(False)  # noqa: FBT003 - the standard library's signature


def _remove_leftover(path: Path) -> None:
    """A daemon that was killed leaves its socket behind; anything else in its place is not ours to remove."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    require_own_socket(path, found)
    if _is_listened_to(path):
        # The caller holds the folder: it is no daemon, but who starts one.
        raise SocketUnusable(f"the service manager listens at {path}", hint=_SERVICE)
    path.unlink()


def _is_listened_to(path: Path) -> bool:
    """False where the system has no table of its sockets: then none is handed over, either."""
    try:
        table = UNIX_TABLE.read_text(errors="surrogateescape")
    except OSError:
        return False
    # Its columns: number, references, protocol, flags, type, state, inode, path (proc(5)).
    rows = (line.split(maxsplit=7) for line in table.splitlines()[1:])
    return any(row[7:] == [str(path)] and int(row[3], 16) & _ACCEPTS for row in rows)


@contextlib.contextmanager
def private_keyed_port(state: Path) -> Iterator[tuple[socket.socket, KeyedPort]]:
    """A port that the system chooses, and the file in the private state folder by which the person's programs
    find it; removed at the end.

    Raises:
        UnsafeFolder: the folder is not ours alone. SocketUnusable: there is no port, or no room for the file.
    """
    make_private(state)
    with contextlib.ExitStack() as stack:
        try:
            listening = stack.enter_context(_bound(socket.AF_INET, IPV4, 0))
            keyed_port = KeyedPort.fresh(listening.getsockname()[1])
            path = keyed_port.write(state)
        except OSError as error:
            raise SocketUnusable(f"no port can be opened for {state}: {error.strerror}") from error
        stack.callback(path.unlink, missing_ok=True)
        yield listening, keyed_port


IPV6 = "::1"
# Any free port of the first address may be taken at the second; the next try gets another one.
TRIES = 8

TAKEN = (
    "The page is not served: port {port} of this machine is taken by {by}. "
    "Stop that one, or name another port in the configuration ([loopback] port), and start signerd again."
)
UNTOLD = "The page is not served: this system does not tell signerd which user a TCP connection belongs to."
NO_IPV6 = f"This machine has no IPv6: the page is served at {IPV4} only."
REFUSED = "The page is not served: this machine lets signerd listen on no port ({reason})."


@dataclass(frozen=True)
class Listening:
    """``sockets`` empty: nothing is served over TCP, and ``notes`` say why."""

    sockets: tuple[socket.socket, ...] = ()
    port: int | None = None
    whose: Whose | None = None
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def listening_ports(port: int) -> Iterator[Listening]:
    """Both addresses at this port, or, for 0, at one that is free; nothing where that cannot be. Raises
    nothing: the private socket serves without it.
    """
    found = _listening(port)
    try:
        yield found
    finally:
        for one in found.sockets:
            one.close()


def _listening(port: int) -> Listening:
    if sys.platform == "win32":
        return Listening(notes=(UNTOLD,))
    whose = teller(IPV4, os.getuid())
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
    """Raises OSError. Half a port is none: who is sent to `localhost` would find another program
    behind it.
    """
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
    """None: this machine has no IPv6. Raises OSError."""
    try:
        return _bound(socket.AF_INET6, IPV6, port)
    except OSError as error:
        if error.errno in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
            return None
        raise


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # Named TCP, not left to the system: asyncio sends at once (TCP_NODELAY) only where it is, else each
    # answer waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":
            # There the other option would let another program take the port from under us.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            # A restarted daemon gets its port back, though connections of the last one are still being
            # forgotten.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError:
        listening.close()
        raise
    return listening
