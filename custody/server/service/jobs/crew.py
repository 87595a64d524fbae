"""Several hands on one outbox: a node that is slow about one job does not hold up the others."""

import threading
import time
from collections.abc import Callable
from functools import partial

from custody.server.service.jobs.outbox import Outbox, Task

# Runs something whose failure must not end the thread.
Survive = Callable[[Callable[[], object]], None]


class Crew:
    """`round` hands out what is due as long as hands are free; whoever is done looks for more by itself."""

    def __init__(self, outbox: Outbox, hands: int, survive: Survive) -> None:
        self._outbox = outbox
        self._count = hands
        self._free = threading.BoundedSemaphore(hands)
        self._survive = survive
        self._stopping = threading.Event()

    def round(self) -> None:
        while not self._stopping.is_set() and self._free.acquire(blocking=False):
            task = self._begin()
            if task is None:
                return
            # A daemon thread: what hangs in a handler beyond its deadline does not keep the process from ending.
            threading.Thread(target=self._work, args=(task,), name=f"job {task.kind}", daemon=True).start()

    def stop(self) -> None:
        """Takes no more jobs from now on."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Waits for what is under way; what takes longer is given back at once, and somebody else does it again."""
        deadline = time.monotonic() + seconds
        for _ in range(self._count):
            if not self._free.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
        self._survive(self._outbox.release)

    def _begin(self) -> Task | None:
        task = None
        try:
            task = self._outbox.lease()
        finally:
            if task is None:
                self._free.release()
        return task

    def _work(self, first: Task) -> None:
        task: Task | None = first
        try:
            while task is not None:
                self._survive(partial(self._outbox.perform, task))
                task = self._next()
        finally:
            self._free.release()

    def _next(self) -> Task | None:
        found: list[Task | None] = [None]
        if not self._stopping.is_set():
            self._survive(lambda: found.append(self._outbox.lease()))
        return found[-1]
