"""The threads that work beside the requests, in any number of processes. Each repeats one round of work."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from custody.server.domain.errors import ChainUnavailable, DatabaseUnavailable, OutcomeUnknown
from custody.server.service.jobs.leases import Lead, LeaseLost
from custody.server.service.jobs.outbox import Outbox, Task
from custody.server.service.requests.changes import Changes

log = structlog.get_logger()

# Jobs of this process are done at once; this is for retries that fall due and for other processes' jobs.
OUTBOX_SECONDS: Final = 0.25
# Of a worker process: so many jobs of one kind of work are done at once.
HANDS: Final = 4
# What is under way when the process is told to stop may take this long; the rest is given back.
JOIN_SECONDS: Final = 10.0


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Loop:
    """``round`` again and again, at most ``seconds`` apart; where it ``wakes``, at once after a commit of
    this process.

    When the process stops: ``stop`` at once, ``join`` with the seconds that it may take, and ``release`` at
    the end.
    """

    name: str
    round: Callable[[], object]
    seconds: float
    wakes: bool = False
    stop: Callable[[], None] = _nothing
    join: Callable[[float], None] = lambda _seconds: None
    release: Callable[[], None] = _nothing


def serve_outbox(name: str, outbox: Outbox, threads: int) -> Loop:
    """A worker for the kinds of jobs that the outbox has handlers for, several at a time."""
    pool = OutboxThreads(name, outbox, threads)
    return Loop(name, pool.round, OUTBOX_SECONDS, wakes=True, stop=pool.stop, join=pool.join)


def alone(name: str, lead: Lead, act: Callable[[], object], seconds: float) -> Loop:
    """What one process of all does at a time."""

    def round_() -> None:
        with lead.work() as held:
            if held is not None:
                act()

    return Loop(name, round_, seconds, release=lead.release)


class Workers:
    """Started and stopped with the process. Stopping waits for what is under way; a kill loses nothing
    either.
    """

    def __init__(self, loops: Sequence[Loop], changes: Changes) -> None:
        self._loops = loops
        self._changes = changes
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._threads = [
            # Daemons: what hangs beyond its deadline does not keep the process from ending.
            threading.Thread(target=self._run, args=(loop,), name=loop.name, daemon=True)
            for loop in self._loops
        ]
        for thread in self._threads:
            thread.start()

    def stop_taking(self) -> None:
        """No new round and no new job from now on; does not wait."""
        self._stopping.set()
        for loop in self._loops:
            loop.stop()
        self._changes.announce()

    def stop(self) -> None:
        """Waits for what is under way, and gives back what does not end in time."""
        self.stop_taking()
        deadline = time.monotonic() + JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for loop in self._loops:
            survive(loop.name, partial(loop.join, max(0.0, deadline - time.monotonic())))
            survive(loop.name, loop.release)

    def _run(self, loop: Loop) -> None:
        seen = self._changes.version
        while not self._stopping.is_set():
            survive(loop.name, loop.round)
            if loop.wakes:
                seen = self._changes.wait(seen, loop.seconds)
            else:
                self._stopping.wait(loop.seconds)


def survive(what: str, act: Callable[[], object]) -> None:
    """A failure in one round does not stop the next one."""
    try:
        act()
    except ChainUnavailable as error:
        # Told as `backend down` or `watcher stuck`, once and not in each round.
        log.debug("chain unavailable", worker=what, reason=error.detail)
    except (DatabaseUnavailable, OutcomeUnknown) as error:
        # It comes back, and so does the work: every job is done again until its end is stored.
        log.warning("database unavailable", worker=what, reason=error.detail)
    except LeaseLost as error:
        log.warning("lease lost", worker=what, lease=str(error))
    except Exception:  # the thread's outermost border: without it one bad row would stop all work in silence
        log.exception("worker failed", worker=what)


class OutboxThreads:
    """`round` hands out due jobs while threads are free; a thread that is done looks for more by itself."""

    def __init__(self, name: str, outbox: Outbox, threads: int) -> None:
        self._name = name
        self._outbox = outbox
        self._count = threads
        self._free = threading.BoundedSemaphore(threads)
        self._stopping = threading.Event()

    def round(self) -> None:
        while not self._stopping.is_set() and self._free.acquire(blocking=False):
            task = self._begin()
            if task is None:
                return
            # A daemon thread: what hangs in a handler beyond its deadline does not keep the process from
            # ending.
            threading.Thread(target=self._work, args=(task,), name=f"job {task.kind}", daemon=True).start()

    def stop(self) -> None:
        """Takes no more jobs from now on."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Waits for what is under way; what takes longer is given back at once, and another process does it
        again.
        """
        deadline = time.monotonic() + seconds
        for _ in range(self._count):
            if not self._free.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
        survive(self._name, self._outbox.release)

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
                survive(self._name, partial(self._outbox.perform, task))
                task = self._next()
        finally:
            self._free.release()

    def _next(self) -> Task | None:
        found: list[Task | None] = [None]
        if not self._stopping.is_set():
            survive(self._name, lambda: found.append(self._outbox.lease()))
        return found[-1]
