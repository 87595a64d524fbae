"""Time limits for a whole exchange over a socket. A socket's time-out bounds a single read: a server that
sends a byte now and then would hold its reader for ever.
"""

import socket
import threading
import time
from contextlib import suppress
from typing import Self


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
        self._line = socket.socket(fileno=socket.dup(line.fileno()))
        if self.is_over:
            # The timer found nothing to cut: finding the server took as long.
            _cut(self._line)

    def _over(self) -> None:
        if self._line is not None:
            _cut(self._line)
