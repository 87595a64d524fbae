"""The TCP port on this machine's own two addresses, for the page and for apps."""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from signerd.endpoint import IPV4
from signerd.loopback.access.peers import Whose, teller
from signerd.loopback.access.sockets import BACKLOG

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
    """Both addresses at this port, or, for 0, at one that is free; nothing where that cannot be. Raises nothing: the private socket serves without it."""
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
    """Raises OSError. Half a port is none: who is sent to `localhost` would find another program behind it."""
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
    # Named TCP, not left to the system: asyncio sends at once (TCP_NODELAY) only where it is, else each answer waits 40 ms.
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
