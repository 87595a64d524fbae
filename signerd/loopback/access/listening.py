"""What the daemon listens on: the private socket in the state folder, and the TCP port on this machine's own
two addresses (L12).
"""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from signerd.endpoint import IPV4, require_own_socket, socket_path
from signerd.errors import SocketUnusable
from signerd.journal.storage import PRIVATE_FILE, make_private
from signerd.loopback.access.peers import Whose, teller

# sockaddr_un's sun_path is 108 bytes on Linux and 104 on macOS, with its closing zero.
MAX_SOCKET_PATH = 103
BACKLOG = 64


@contextlib.contextmanager
def private_socket(state: Path) -> Iterator[socket.socket]:
    """A listening socket of mode 0600 in the private state folder, which the caller holds; removed at the
    end.

    Raises:
        UnsafeFolder: the folder, or what is in the socket's place, is not ours alone. SocketUnusable: it
            cannot be made here.
    """
    make_private(state)
    path = socket_path(state)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise SocketUnusable(
            f"{path} is longer than the {MAX_SOCKET_PATH} bytes that a socket's path may have"
        )
    _remove_leftover(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the socket: it is never open to others, not even for a moment.
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


def _remove_leftover(path: Path) -> None:
    """A daemon that was killed leaves its socket behind; anything else in its place is not ours to remove."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    require_own_socket(path, found)
    path.unlink()


IPV6 = "::1"
# Any free port of the first address may be taken at the second; the next try gets another one.
TRIES = 8

TAKEN = (
    "The page is not served: port {port} of this machine is taken by another program. "
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
    whose = teller(IPV4, os.getuid())
    if whose is None:
        return Listening(notes=(UNTOLD,))
    try:
        sockets = _both(port)
    except OSError as error:
        taken = error.errno in {errno.EADDRINUSE, errno.EACCES}
        note = TAKEN.format(port=port) if taken else REFUSED.format(reason=error.strerror)
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
        # A restarted daemon gets its port back, though connections of the last one are still being forgotten.
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
