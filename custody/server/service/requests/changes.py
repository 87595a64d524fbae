"""Tells those who wait that something was committed: long polls, and workers with nothing to do."""

import threading
from collections.abc import Callable
from typing import Final

from sqlalchemy.orm import Session

from custody.server.meters import Meters
from custody.server.service.requests.revisions import raise_for_block, raise_revision
from custody.server.store.unit import after_commit, before_commit

# What a listener is told: the workspaces that moved with their new numbers; None where it has to look for itself.
Moved = dict[int, int] | None
_MOVED: Final = "moved workspaces"


class Changes:
    """Counts commits that were announced. Waiters of other processes find out by looking again now and then."""

    def __init__(self, meters: Meters | None = None) -> None:
        self.meters = meters or Meters()
        self._condition = threading.Condition()
        self._version = 0
        self._listeners: set[Callable[[Moved], None]] = set()
        self._closing = False

    @property
    def closing(self) -> bool:
        """The server is about to stop: whoever waits answers with what there is."""
        return self._closing

    def close(self) -> None:
        """Wake everybody, and let nobody wait any more."""
        self._closing = True
        self.announce()
        self._tell(None)

    @property
    def version(self) -> int:
        with self._condition:
            return self._version

    def moved(self, db: Session, workspace_id: int) -> None:
        """Something that readers of the workspace's proposals see has changed: for them, in every process, and as
        ``after_commit`` for the workers of this one. Its number is raised once, at the end.
        """
        moved: dict[int, int] = db.info.setdefault(_MOVED, {})
        if not moved:
            before_commit(db, lambda: moved.update({each: raise_revision(db, each) for each in moved}))
            after_commit(db, lambda: self._after_move(moved))
        moved.setdefault(workspace_id, 0)

    def moved_by_block(self, db: Session, chain: str) -> None:
        """The same for every workspace with a proposal in a block of this chain."""
        raise_for_block(db, chain)
        after_commit(db, lambda: self._tell(None))

    def after_commit(self, db: Session) -> None:
        """Announces a change once the transaction of `db` is on disk; a rolled-back one is not announced."""
        after_commit(db, self.announce)

    def count(self, db: Session, add: Callable[[], None]) -> None:
        """Counts something once the transaction of `db` is on disk."""
        after_commit(db, add)

    def announce(self) -> None:
        with self._condition:
            self._version += 1
            self._condition.notify_all()

    def listen(self, listener: Callable[[Moved], None]) -> None:
        """From now on `listener` hears of every move that this process commits, and of the closing; on whatever thread."""
        with self._condition:
            self._listeners.add(listener)

    def wait(self, seen: int, timeout: float) -> int:
        """Blocks a thread until the version is not `seen`, or for `timeout` seconds; returns the version."""
        with self._condition:
            self._condition.wait_for(lambda: self._closing or self._version != seen, timeout)
            return self._version

    def _after_move(self, moved: Moved) -> None:
        self.announce()
        self._tell(moved)

    def _tell(self, moved: Moved) -> None:
        with self._condition:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(moved)
