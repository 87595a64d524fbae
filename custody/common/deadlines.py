"""Time limits for a whole exchange over a socket. The time-outs of sockets and of httpx bound a single read:
a server that sends a byte now and then would hold its reader for ever.
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
        # The socket's own shutdown: TLS's would wait for the other side.
        socket.socket.shutdown(line, socket.SHUT_RDWR)


class Deadline:
    """For one socket, as a context manager: when the time is over, the watched socket is shut down, and its
    reader sees the end of the stream.
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
        """Seconds. Never 0, which means no time-out to a socket."""
        return max(0.001, self._ends - time.monotonic())

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._timer.cancel()
        if self._line is not None:
            self._line.close()

    def watch(self, line: socket.socket) -> None:
        """Watches a duplicate of the socket: TLS takes over the original."""
        self._line = line.dup()
        if self.is_over:
            # The timer found nothing to cut: finding the server took as long.
            _cut(self._line)

    def _over(self) -> None:
        if self._line is not None:
            _cut(self._line)


# httpcore's trace events for a new connection, before and after TLS.
_OPENED = frozenset(
    {
        "connection.connect_tcp.complete",
        "connection.connect_unix_socket.complete",
        "connection.start_tls.complete",
    }
)
# Longer than the reader's own deadline, which a merely slow exchange meets first.
GRACE_SECONDS = 5.0


class ExchangeDeadlines:
    """For an ``httpx.Client``: shuts down the connection of an exchange that exceeds its deadline.
    Thread-safe. Before the headers of a response, httpx does not say which open connection the exchange
    reuses: then all connections of the client, all to the same server, are shut down. A caller whose other
    exchanges must not be interrupted sends ``Connection: close``.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._open: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()

    @contextmanager
    def within(self, seconds: float) -> Iterator[dict[str, Any]]:
        """The request's extensions for an exchange of at most that long, and a grace period.

        Raises:
            httpx.ReadTimeout: the exchange took longer.
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
