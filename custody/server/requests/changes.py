"""Numbers the changes that readers of proposals see, and wakes what waits for them: threads, and long polls.

Each workspace has a revision, which is raised in the transaction of such a change. A long poll reads this
number, and the list of proposals only when it has risen.
"""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog
from sqlalchemy import bindparam, exists, insert, select, update
from sqlalchemy.orm import Session

from custody.server.errors import DatabaseUnavailable
from custody.server.rules.ports import UNCOUNTED
from custody.server.store import Store
from custody.server.store.models import ProposalRow, RevisionRow, WorkspaceRow, table_of
from custody.server.store.store import after_commit, before_commit, rows_in

if TYPE_CHECKING:
    from custody.server.meters import Meters

# How often work is prepared outside the write lock. After that it is prepared inside, where nothing can
# change.
MAX_TRIES: Final = 3
# How often a thread that waits for a broadcast looks for what another process did.
RECHECK_SECONDS: Final = 0.25
_REVISIONS = table_of(RevisionRow)
_RAISE = (
    update(_REVISIONS)
    .where(_REVISIONS.c.workspace_id == bindparam("raised_id"))
    .values(number=_REVISIONS.c.number + 1)
    .returning(_REVISIONS.c.number)
)
_NUMBER = select(RevisionRow.number).where(RevisionRow.workspace_id == bindparam("workspace_id"))

_MOVED: Final = "moved workspaces"


class OutdatedDraft(Exception):
    """A commit invalidated what was prepared in a snapshot: prepare it again. Where that helps no more, the
    runner answers StateConflict with its sentence.
    """


class Changes:
    """Counts the commits of this process. Other processes learn of them by reading from time to time."""

    def __init__(self, meters: "Meters" = UNCOUNTED) -> None:
        self.meters = meters
        # Notified at each commit.
        self.condition = threading.Condition()
        self._version = 0
        # Whether the server is stopping: waiting calls then answer at once.
        self.closing = False

    def close(self) -> None:
        """Wakes every waiting thread, and ends all further waits at once."""
        self.closing = True
        self.announce()

    @property
    def version(self) -> int:
        with self.condition:
            return self._version

    def moved(self, db: Session, workspace_id: int) -> None:
        """Call it for a change that readers of the workspace's proposals see. Raises the revision once, at
        the end of the transaction, and announces the commit once it is on disk.
        """
        moved: set[int] = db.info.setdefault(_MOVED, set())
        if not moved:
            before_commit(db, lambda: raise_revisions(db, moved))
            after_commit(db, self.announce)
        moved.add(workspace_id)

    def moved_by_block(self, db: Session, chain: str) -> None:
        """`moved` for every workspace with a proposal in a block of the chain: confirmations have changed.
        The watcher announces its commit itself.
        """
        on_chain = select(WorkspaceRow.id).where(WorkspaceRow.chain == chain)
        in_a_block = exists().where(
            ProposalRow.workspace_id == RevisionRow.workspace_id, ProposalRow.block_height.is_not(None)
        )
        db.execute(
            update(RevisionRow)
            .where(RevisionRow.workspace_id.in_(on_chain), in_a_block)
            .values(number=RevisionRow.number + 1)
            .execution_options(synchronize_session=False)
        )

    def announce(self) -> None:
        with self.condition:
            self._version += 1
            self.condition.notify_all()

    def wait(self, seen: int, timeout: float) -> int:
        """Blocks a thread until the version is not `seen`, or for `timeout` seconds; returns the version."""
        with self.condition:
            self.condition.wait_for(lambda: self.closing or self._version != seen, timeout)
            return self._version

    def looks(self, seconds: float) -> Iterator[None]:
        """One turn at once, and another after each commit or `RECHECK_SECONDS`, until the time is over or the
        server stops. What it waits for may be done by another process, whose commits are not announced here.
        """
        deadline = time.monotonic() + seconds
        while not self.closing and (left := deadline - time.monotonic()) > 0:
            seen = self.version
            yield
            self.wait(seen, min(left, RECHECK_SECONDS))


def raise_revisions(db: Session, workspace_ids: Iterable[int]) -> None:
    """One writer at a time (ADR 13): no two raise the same value."""
    for workspace_id in workspace_ids:
        if db.scalar(_RAISE, {"raised_id": workspace_id}) is None:
            db.execute(insert(_REVISIONS), {"workspace_id": workspace_id, "number": 1})


def read_revision(db: Session, workspace_id: int) -> int:
    """0 where nothing was ever proposed."""
    return db.scalar(_NUMBER, {"workspace_id": workspace_id}) or 0


def read_revisions(db: Session, workspace_ids: Collection[int]) -> Mapping[int, int]:
    """By workspace; a workspace without a revision is left out."""
    rows = rows_in(db, select(RevisionRow), RevisionRow.workspace_id, workspace_ids)
    return {revision.workspace_id: revision.number for (revision,) in rows}


log = structlog.get_logger()

# How soon a poll learns of another process's commit. It learns of this process's commits at once.
FOLLOW_SECONDS = 1.0


@dataclass(eq=False)
class _Waiter:
    """A poll on its event loop. Woken when its workspace's revision is higher than the one its list was read
    with.
    """

    seen: int
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """An event loop that has ended has no waiters."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.woken.set)


class LongPolls:
    """The long polls of one process, whose workspaces one thread follows while there are any. A server has
    one.
    """

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes
        self._waiting: dict[int, set[_Waiter]] = defaultdict(set)
        self._look_now = False
        self._seen = 0
        self._thread: threading.Thread | None = None
        self._condition = changes.condition
        changes.meters.long_polls.set_function(lambda: self.open)

    async def wait(self, workspace_id: int, seen: int, seconds: float) -> bool:
        """Whether the workspace's revision rose above `seen` in time. False also where the server is about to
        stop.
        """
        waiter = _Waiter(seen)
        with self._condition:
            self._waiting[workspace_id].add(waiter)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="long polls", daemon=True)
                self._thread.start()
            # Anybody may have committed since the first poll read.
            self._look_now = True
            self._condition.notify_all()
        try:
            async with asyncio.timeout(seconds):
                await waiter.woken.wait()
        except TimeoutError:
            return False
        finally:
            with self._condition:
                self._waiting[workspace_id].discard(waiter)
                if not self._waiting[workspace_id]:
                    del self._waiting[workspace_id]
                    self._condition.notify_all()
        return not self._changes.closing

    @property
    def open(self) -> int:
        """How many wait."""
        with self._condition:
            return sum(map(len, self._waiting.values()))

    def _follow(self) -> None:
        while True:
            with self._condition:
                if not self._waiting:
                    self._thread = None
                    return
                self._look_now, self._seen, followed = False, self._changes.version, tuple(self._waiting)
            revisions: Mapping[int, int] = {}
            try:
                if not self._changes.closing:
                    with self._store.read() as db:
                        revisions = read_revisions(db, followed)
            except DatabaseUnavailable as error:
                # The polls also read from time to time themselves, and report the error to their callers.
                log.warning("long polls cannot look", reason=error.detail)
            with self._condition:
                for workspace_id, waiters in self._waiting.items():
                    for waiter in waiters:
                        if self._changes.closing or revisions.get(workspace_id, 0) > waiter.seen:
                            waiter.wake()
                self._condition.wait_for(
                    lambda: self._look_now or self._changes.version != self._seen or not self._waiting,
                    FOLLOW_SECONDS,
                )
