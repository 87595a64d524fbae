"""An end to a whole exchange over a socket: time-outs of sockets and of httpx bound one read, and a server
that drips bytes would hold its reader for ever.
"""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self
from weakref import WeakSet


def _cut(line: socket.socket) -> None:
    with suppress(OSError):
        # Not a TLS shutdown, which would wait for the other side.
        socket.socket.shutdown(line, socket.SHUT_RDWR)


class Deadline:
    """For one socket. Use as a context manager: when the seconds are over, the socket that is watched is shut
    down, and its reader sees it end.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._line: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._over)
        self._timer.daemon = True

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def left(self) -> float:
        """Never 0: to a socket, that is no time-out."""
        return max(0.001, self._ends - time.monotonic())

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._timer.cancel()
        if self._line is not None:
            self._line.close()

    def watch(self, line: socket.socket) -> None:
        """A handle of our own: TLS takes the other one over."""
        self._line = line.dup()

    def _over(self) -> None:
        if self._line is not None:
            _cut(self._line)


# How httpcore tells of a connection, before and after TLS takes it over.
_OPENED = frozenset(
    {
        "connection.connect_tcp.complete",
        "connection.connect_unix_socket.complete",
        "connection.start_tls.complete",
    }
)
# An exchange that is only slow meets the reader's own deadline first.
GRACE_SECONDS = 5.0


class ExchangeDeadlines:
    """For an ``httpx.Client``: shuts down the connection of an exchange that exceeds its deadline.
    Thread-safe.

    Before an answer's head has come, httpx does not tell which open connection the exchange uses again: then
    all connections of the client are shut down, which all lead to the same server. A caller whose other
    exchanges must go on sends ``Connection: close``.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._open: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()

    @contextmanager
    def within(self, seconds: float) -> Iterator[dict[str, Any]]:
        """The request's extensions, for an exchange that ends soon after that long.

        Raises:
            httpx.ReadTimeout: the server never came to an end.
        """
        import httpx

        over, own = threading.Event(), WeakSet[Any]()

        def note(event: str, info: Mapping[str, Any]) -> None:
            if event in _OPENED:
                with self._lock:
                    self._open.add(info["return_value"])
                    own.add(info["return_value"])

        timer = threading.Timer(seconds + self._grace, self._end, [over, own])
        timer.daemon = True
        timer.start()
        try:
            yield {"trace": note}
        except httpx.TransportError as error:
            if over.is_set():
                raise httpx.ReadTimeout("The answer has no end.") from error
            raise
        finally:
            timer.cancel()

    def _end(self, over: threading.Event, own: WeakSet[Any]) -> None:
        over.set()
        with self._lock:
            streams = list(own) or list(self._open)
        for stream in streams:
            _cut(stream.get_extra_info("socket"))
