"""An end to a whole exchange over a socket, whose own time-outs are for one read: who drips bytes would hold us for ever."""

import socket
import threading
import time
from contextlib import suppress
from typing import Self


class Deadline:
    """Use as a context manager. When the seconds are over, the line that is watched is cut; its reader sees it end."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._line: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def left(self) -> float:
        """Never nothing: to a socket, no time is no time-out."""
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

    def _cut(self) -> None:
        with suppress(OSError):
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)
