"""A deadline for a whole exchange over a socket. A socket's own time-outs are for one read: a peer that drips
bytes never meets them.
"""

import socket
import threading
import time
from contextlib import suppress
from typing import Self


class Deadline:
    """A context manager. When the seconds are over, the watched connection is shut down, and its reader sees
    it end.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._line: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def left(self) -> float:
        """Never 0: to a socket, 0 means no time-out."""
        return max(0.001, self._ends - time.monotonic())

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._timer.cancel()
        if self._line is not None:
            self._line.close()

    def watch(self, line: socket.socket) -> None:
        """Duplicates the descriptor, because TLS takes over the original."""
        self._line = line.dup()

    def _cut(self) -> None:
        with suppress(OSError):
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)
