"""Notifies waiting threads of commits, and numbers the changes that readers of proposals see.

Each workspace has a revision, which is raised in the transaction of such a change. A long poll reads this
number, and the list of proposals only when it has risen.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from sqlalchemy import bindparam, exists, insert, select, update
from sqlalchemy.orm import Session

from custody.server.meters import Meters
from custody.server.store.models import Proposal, Revision, Workspace, table_of
from custody.server.store.store import after_commit, before_commit, chunks

# How often work is prepared outside the write lock. After that it is prepared inside, where nothing can
# change.
MAX_TRIES: Final = 3
_REVISIONS = table_of(Revision)
_RAISE = (
    update(_REVISIONS)
    .where(_REVISIONS.c.workspace_id == bindparam("raised_id"))
    .values(number=_REVISIONS.c.number + 1)
    .returning(_REVISIONS.c.number)
)
_NUMBER = select(Revision.number).where(Revision.workspace_id == bindparam("workspace_id"))

# What a listener gets: the new revisions by workspace, or None where it has to read them.
Moved = dict[int, int] | None
_MOVED: Final = "moved workspaces"


class Outdated(Exception):
    """A commit invalidated what was prepared in a snapshot: prepare it again. It never reaches a caller."""


class Changes:
    """Counts the commits of this process. Other processes learn of them by reading from time to time."""

    def __init__(self, meters: Meters | None = None) -> None:
        self.meters = meters or Meters()
        self._condition = threading.Condition()
        self._version = 0
        self._listeners: set[Callable[[Moved], None]] = set()
        self._closing = False

    @property
    def closing(self) -> bool:
        """Whether the server is stopping: waiting calls then answer at once."""
        return self._closing

    def close(self) -> None:
        """Wakes every waiting thread, and ends all further waits at once."""
        self._closing = True
        self.announce()
        self._tell(None)

    @property
    def version(self) -> int:
        with self._condition:
            return self._version

    def moved(self, db: Session, workspace_id: int) -> None:
        """Call it for a change that readers of the workspace's proposals see. Raises the revision once, at
        the end of the transaction, and announces the commit as ``after_commit`` does.
        """
        moved: dict[int, int] = db.info.setdefault(_MOVED, {})
        if not moved:
            before_commit(db, lambda: moved.update({each: raise_revision(db, each) for each in moved}))
            after_commit(db, lambda: self._after_move(moved))
        moved.setdefault(workspace_id, 0)

    def moved_by_block(self, db: Session, chain: str) -> None:
        """`moved` for every workspace with a proposal in a block of this chain."""
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
        """Calls `listener` for every revision that this process raises, and at closing, from any thread."""
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


def raise_revision(db: Session, workspace_id: int) -> int:
    """The workspace's new revision. One writer at a time (ADR 13): no two raise the same value."""
    number: int | None = db.scalar(_RAISE, {"raised_id": workspace_id})
    if number is None:
        number = 1
        db.execute(insert(_REVISIONS), {"workspace_id": workspace_id, "number": number})
    return number


def raise_for_block(db: Session, chain: str) -> None:
    """Raises the revisions after a block was connected or disconnected: confirmations have changed."""
    on_chain = select(Workspace.id).where(Workspace.chain == chain)
    in_a_block = exists().where(
        Proposal.workspace_id == Revision.workspace_id, Proposal.block_height.is_not(None)
    )
    db.execute(
        update(Revision)
        .where(Revision.workspace_id.in_(on_chain), in_a_block)
        .values(number=Revision.number + 1)
        .execution_options(synchronize_session=False)
    )


def read_revision(db: Session, workspace_id: int) -> int:
    """0 where nothing was ever proposed."""
    return db.scalar(_NUMBER, {"workspace_id": workspace_id}) or 0


def read_revisions(db: Session, workspace_ids: Collection[int]) -> Mapping[int, int]:
    """By workspace; a workspace without a revision is left out."""
    return {
        revision.workspace_id: revision.number
        for ids in chunks(workspace_ids)
        for revision in db.scalars(select(Revision).where(Revision.workspace_id.in_(ids)))
    }
