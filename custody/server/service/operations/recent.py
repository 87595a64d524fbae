"""An answer that many ask for and that must neither hammer what is asked nor wait for it without end."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Recent(Generic[Answer]):
    """`read` runs in a thread of its own, one at a time; for `fresh_seconds` everybody is given the same answer or error.

    What `read` waits for has deadlines of its own; whoever asks waits no longer than they like.
    """

    def __init__(
        self,
        read: Callable[[], Answer],
        *,
        fresh_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._fresh_seconds = fresh_seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._future: Future[Answer] | None = None
        self._asked_at = 0.0

    def ask(self) -> Future[Answer]:
        with self._lock:
            now = self._monotonic()
            if self._future is None or (
                self._future.done() and not self._asked_at <= now < self._asked_at + self._fresh_seconds
            ):
                self._future, self._asked_at = Future(), now
                threading.Thread(
                    target=self._answer, args=(self._future,), name="recent", daemon=True
                ).start()
            return self._future

    def _answer(self, future: Future[Answer]) -> None:
        try:
            answer = self._read()
        except Exception as error:  # noqa: BLE001 - it is raised for whoever asked
            future.set_exception(error)
        else:
            future.set_result(answer)
