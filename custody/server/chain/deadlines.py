"""A deadline for each whole HTTP exchange: httpx's time-outs bound one read, and a slow server could drip
headers for ever.
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import httpx

# How httpcore tells of a connection, before and after TLS takes it over.
_OPENED = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})
# An exchange that is only slow meets the reader's own deadline first; then no other exchange is cut.
GRACE_SECONDS = 5.0


class ExchangeDeadlines:
    """Closes all connections of one client when one exchange exceeds its deadline; all are to the same
    server.

    Thread-safe.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._open: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()

    @contextmanager
    def within(self, seconds: float) -> Iterator[dict[str, Any]]:
        """The request's extensions, for an exchange that ends soon after that long. Raises
        httpx.ReadTimeout.
        """
        over = threading.Event()
        timer = threading.Timer(seconds + self._grace, self._cut, [over])
        timer.daemon = True
        timer.start()
        try:
            yield {"trace": self._note}
        except httpx.TransportError as error:
            if over.is_set():
                raise httpx.ReadTimeout("The answer has no end.") from error
            raise
        finally:
            timer.cancel()

    def _note(self, event: str, info: Mapping[str, Any]) -> None:
        if event in _OPENED:
            with self._lock:
                self._open.add(info["return_value"])

    def _cut(self, over: threading.Event) -> None:
        over.set()
        with self._lock:
            streams = list(self._open)
        for stream in streams:
            line = stream.get_extra_info("socket")
            with suppress(OSError):
                # Not a TLS shutdown, which would wait for the other side.
                socket.socket.shutdown(line, socket.SHUT_RDWR)
