"""The background threads of a process. Each repeats one round of work."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from custody.server.errors import ChainUnavailable, DatabaseUnavailable, OutcomeUnknown
from custody.server.jobs.leases import Held, Lease, LeaseLost
from custody.server.jobs.outbox import Outbox, Task
from custody.server.requests.changes import Changes

log = structlog.get_logger()

# Jobs of this process start at once; this interval is for retries and for other processes' jobs.
OUTBOX_SECONDS: Final = 0.25
# Running jobs may take this long when the process stops; after that they are given back.
JOIN_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Loop:
    """Repeats ``round``, at most ``seconds`` apart; where it ``wakes``, at once after a commit of this
    process.

    When the process stops, it calls ``stop`` at once, then ``end`` with the seconds that are left.
    """

    name: str
    round: Callable[[], object]
    seconds: float
    wakes: bool = False
    stop: Callable[[], None] = lambda: None
    end: Callable[[float], None] = lambda _seconds: None


def serve_outbox(name: str, outbox: Outbox, threads: int) -> Loop:
    """Works on the outbox's jobs in several threads."""
    pool = OutboxThreads(name, outbox, threads)
    return Loop(name, pool.round, OUTBOX_SECONDS, wakes=True, stop=pool.stop, end=pool.join)


def alone(name: str, lease: Lease, act: Callable[[Held], object], seconds: float) -> Loop:
    """Runs ``act`` while this process holds the lease."""

    def round_() -> None:
        with lease.work() as held:
            if held is not None:
                act(held)

    return Loop(name, round_, seconds, end=lambda _seconds: lease.release())


class Workers:
    """The loops of a process. Stopping waits for running work; a kill loses nothing either."""

    def __init__(self, loops: Sequence[Loop], changes: Changes) -> None:
        self._loops = loops
        self._changes = changes
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._threads = [
            # Daemon threads: one that hangs beyond its deadline does not keep the process alive.
            threading.Thread(target=self._run, args=(loop,), name=loop.name, daemon=True)
            for loop in self._loops
        ]
        for thread in self._threads:
            thread.start()

    def stop_taking(self) -> None:
        """Starts no new round and no new job from now on; does not wait."""
        self._stopping.set()
        for loop in self._loops:
            loop.stop()
        self._changes.announce()

    def stop(self) -> None:
        """Waits for running work, and gives back jobs that do not end in time."""
        self.stop_taking()
        deadline = time.monotonic() + JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for loop in self._loops:
            with surviving(loop.name):
                loop.end(max(0.0, deadline - time.monotonic()))

    def _run(self, loop: Loop) -> None:
        seen = self._changes.version
        while not self._stopping.is_set():
            with surviving(loop.name):
                loop.round()
            if loop.wakes:
                seen = self._changes.wait(seen, loop.seconds)
            else:
                self._stopping.wait(loop.seconds)


@contextmanager
def surviving(what: str) -> Iterator[None]:
    """Logs a failure of one round, so that the next one follows."""
    try:
        yield
    except ChainUnavailable as error:
        # Logged elsewhere as `backend down` or `watcher stuck`, once and not in each round.
        log.debug("chain unavailable", worker=what, reason=error.detail)
    except (DatabaseUnavailable, OutcomeUnknown) as error:
        # Nothing is lost: a job is done again until its end is stored.
        log.warning("database unavailable", worker=what, reason=error.detail)
    except LeaseLost as error:
        log.warning("lease lost", worker=what, lease=str(error))
    except Exception:  # the thread's outermost frame: without this one bad row would silently stop all work
        log.exception("worker failed", worker=what)


class OutboxThreads:
    """`round` starts due jobs while threads are free; a thread that is done takes the next job itself."""

    def __init__(self, name: str, outbox: Outbox, threads: int) -> None:
        self._name = name
        self._outbox = outbox
        self._count = threads
        self._free = threading.BoundedSemaphore(threads)
        self._stopping = threading.Event()

    def round(self) -> None:
        while not self._stopping.is_set() and self._free.acquire(blocking=False):
            task = None
            try:
                task = self._outbox.lease()
            finally:
                if task is None:
                    self._free.release()
            if task is None:
                return
            # A daemon thread: a handler that hangs does not keep the process alive.
            threading.Thread(target=self._work, args=(task,), name=f"job {task.kind}", daemon=True).start()

    def stop(self) -> None:
        """Takes no more jobs from now on."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Waits for running jobs, then gives the others back for another process."""
        deadline = time.monotonic() + seconds
        for _ in range(self._count):
            if not self._free.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
        with surviving(self._name):
            self._outbox.release()

    def _work(self, task: Task | None) -> None:
        try:
            while task is not None:
                with surviving(self._name):
                    self._outbox.perform(task)
                task = None
                if not self._stopping.is_set():
                    with surviving(self._name):
                        task = self._outbox.lease()
        finally:
            self._free.release()
