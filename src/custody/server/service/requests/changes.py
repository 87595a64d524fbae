"""Tells those who wait that something was committed: long polls, and workers with nothing to do."""

import asyncio
import threading

from sqlalchemy import event
from sqlalchemy.orm import Session


class Changes:
    """Counts commits that were announced. Waiters of other processes find out by looking again now and then."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._version = 0
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closing = False

    @property
    def closing(self) -> bool:
        """The server is about to stop: whoever waits answers with what there is."""
        return self._closing

    def close(self) -> None:
        """Wake everybody, and let nobody wait any more."""
        self._closing = True
        self.announce()

    @property
    def version(self) -> int:
        with self._condition:
            return self._version

    def after_commit(self, db: Session) -> None:
        """Announces a change once the transaction of `db` is on disk; a rolled-back one is not announced."""
        event.listen(db, "after_commit", lambda _db: self.announce(), once=True)

    def announce(self) -> None:
        with self._condition:
            self._version += 1
            self._condition.notify_all()
            for loop, waiter in self._waiters:
                loop.call_soon_threadsafe(waiter.set)

    def wait(self, seen: int, timeout: float) -> int:
        """Blocks a thread until the version is not `seen`, or for `timeout` seconds; returns the version."""
        with self._condition:
            self._condition.wait_for(lambda: self._closing or self._version != seen, timeout)
            return self._version

    async def wait_async(self, seen: int, timeout: float) -> int:  # noqa: ASYNC109 - as its blocking twin
        """The same for a task: no thread is held."""
        waiter = asyncio.Event()
        entry = (asyncio.get_running_loop(), waiter)
        with self._condition:
            if self._closing or self._version != seen:
                return self._version
            self._waiters.add(entry)
        try:
            async with asyncio.timeout(timeout):
                await waiter.wait()
        except TimeoutError:
            pass
        finally:
            with self._condition:
                self._waiters.discard(entry)
        return self.version
