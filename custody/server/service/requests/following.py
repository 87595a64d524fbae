"""Long polls: one follower reads the revisions of all workspaces that calls wait for."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field

import structlog
from starlette.concurrency import run_in_threadpool

from custody.server.domain.errors import DatabaseUnavailable
from custody.server.service.requests.changes import Changes, Moved, read_revisions
from custody.server.store import Store

log = structlog.get_logger()

# How soon a poll learns of another process's commit. It learns of this process's commits at once.
FOLLOW_SECONDS = 1.0


@dataclass(eq=False)
class _Waiter:
    """Woken when its workspace's revision is higher than the one its list was read with."""

    seen: int
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class _LoopFollower:
    """The waiters of one event loop, on which everything here runs. Its task runs only while there are
    any.
    """

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, set[_Waiter]] = defaultdict(set)
        # Revisions that this process raised while there was no waiter for their workspace.
        self._unheard: dict[int, int] = {}
        self._look_now = asyncio.Event()
        self.count = 0
        self._task: asyncio.Task[None] | None = None

    def hear(self, moved: Moved) -> None:
        """Call it from any thread. An event loop that has ended has no waiters."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._on_move, moved)

    async def wait(self, workspace_id: int, seen: int, seconds: float) -> bool:
        """Whether the workspace's revision rose above `seen` in time. False also where the server is about to
        stop.
        """
        if self._unheard.pop(workspace_id, 0) > seen:
            return True
        waiter = _Waiter(seen)
        self._waiting[workspace_id].add(waiter)
        self.count += 1
        self._start()
        try:
            async with asyncio.timeout(seconds):
                await waiter.woken.wait()
        except TimeoutError:
            return False
        finally:
            self._forget(workspace_id, waiter)
        return not self._changes.closing

    def _forget(self, workspace_id: int, waiter: _Waiter) -> None:
        self.count -= 1
        waiters = self._waiting[workspace_id]
        waiters.discard(waiter)
        if not waiters:
            del self._waiting[workspace_id]
        if not self._waiting:
            # The task sees that and ends. Cancelling it would leave its thread reading.
            self._look_now.set()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            # An empty context: the follower's log lines belong to no request.
            self._task = self._loop.create_task(self._follow(), name="long polls", context=Context())

    async def _follow(self) -> None:
        while self._waiting:
            # Another process may have committed since the first poll read.
            self._look_now.clear()
            try:
                self._wake(await run_in_threadpool(self._read, tuple(self._waiting)))
            except DatabaseUnavailable as error:
                # The polls also read from time to time themselves, and report the error to their callers.
                log.warning("long polls cannot look", reason=error.detail)
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_SECONDS):
                    await self._look_now.wait()
        self._task = None

    def _read(self, workspace_ids: tuple[int, ...]) -> Mapping[int, int]:
        with self._store.read() as db:
            return read_revisions(db, workspace_ids)

    def _on_move(self, moved: Moved) -> None:
        if self._changes.closing:
            self._wake_all()
        elif moved is None:
            self._look_now.set()
        else:
            self._unheard |= {key: number for key, number in moved.items() if key not in self._waiting}
            self._wake(moved)

    def _wake(self, numbers: Mapping[int, int]) -> None:
        for workspace_id, number in numbers.items():
            for waiter in self._waiting.get(workspace_id, ()):
                if number > waiter.seen:
                    waiter.woken.set()

    def _wake_all(self) -> None:
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.woken.set()


class Following:
    """The long polls of one process, on any number of event loops. A server has one."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes
        self._lock = threading.Lock()
        self._followers: dict[asyncio.AbstractEventLoop, _LoopFollower] = {}
        changes.meters.long_polls.set_function(lambda: self.open)
        changes.listen(self._hear)

    async def wait(self, workspace_id: int, seen: int, seconds: float) -> bool:
        """Whether the workspace's revision rose above `seen` in time. False also where the server is about to
        stop.
        """
        follower = self._of_this_loop()
        # Checked after the follower exists, which is notified of the closing.
        return not self._changes.closing and await follower.wait(workspace_id, seen, seconds)

    @property
    def open(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(each.count for each in self._followers.values())

    def _of_this_loop(self) -> _LoopFollower:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._followers:
                for ended in [known for known in self._followers if known.is_closed()]:
                    del self._followers[ended]
                self._followers[loop] = _LoopFollower(self._store, self._changes)
            return self._followers[loop]

    def _hear(self, moved: Moved) -> None:
        with self._lock:
            followers = tuple(self._followers.values())
        for follower in followers:
            follower.hear(moved)
