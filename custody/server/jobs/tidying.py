"""Housekeeping: expires what has waited too long, and deletes rows that are no longer needed.

Unauthenticated callers can cause rows to be stored, with addresses in them: those must not stay for ever.
Each transaction takes one batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from sqlalchemy import ColumnElement, Select, delete, or_, select
from sqlalchemy.orm import Session

from custody.server.errors import DatabaseUnavailable, OutcomeUnknown
from custody.server.rules.credentials import ACCESS_LIFETIME, OTP_WINDOW, REFRESH_LIFETIME
from custody.server.rules.ports import Clock
from custody.server.store import Store
from custody.server.store.models import (
    AccessTokenRow,
    JobRow,
    OtpChallengeRow,
    RefreshTokenRow,
    SignInSessionRow,
)

INTERVAL: Final = timedelta(hours=1)
BATCH: Final = 500
# Long enough for an operator to look into late broadcasts. Jobs that name people are deleted sooner,
# elsewhere.
DONE_JOB_KEPT: Final = timedelta(days=7)
# Failed jobs stay for an operator to look at.
DEAD_JOB_KEPT: Final = timedelta(days=30)
# Its last access token has expired by then as well; the audit log still has the session.
SESSION_KEPT: Final = REFRESH_LIFETIME + ACCESS_LIFETIME

# Deletes at most a batch of rows that are over at that moment, and returns how many.
Part = Callable[[Session, datetime], int]


class Tidying:
    """Runs every hour in the process that holds the sweeping lease; at once after it takes over."""

    def __init__(self, store: Store, clock: Clock, parts: Sequence[Part]) -> None:
        self._store = store
        self._clock = clock
        self._parts = parts
        self._done_at: datetime | None = None

    def run_due(self) -> int:
        """Deletes what is over, and returns how many rows that was."""
        now = self._clock()
        if self._done_at is not None and self._done_at <= now < self._done_at + INTERVAL:
            return 0
        self._done_at = now
        return sum(self._forget(part, now) for part in self._parts)

    def _forget(self, part: Part, now: datetime) -> int:
        count = 0
        while True:
            with self._store.write() as db:
                done = part(db, now)
            count += done
            if done < BATCH:
                return count


def delete_batch(db: Session, table: Any, *over: ColumnElement[bool]) -> int:
    """Deletes a batch of a table's rows that are over, and returns how many."""
    found = db.scalars(select(table.id).where(*over).limit(BATCH)).all()
    db.execute(delete(table).where(table.id.in_(found)))
    return len(found)


def _jobs(db: Session, now: datetime) -> int:
    """Jobs that were done or given up."""
    return delete_batch(
        db, JobRow, or_(JobRow.done_at <= now - DONE_JOB_KEPT, JobRow.dead_at <= now - DEAD_JOB_KEPT)
    )


def _challenges(db: Session, now: datetime) -> int:
    """Challenges that no longer count for the account's limits."""
    return delete_batch(db, OtpChallengeRow, OtpChallengeRow.created_at <= now - OTP_WINDOW)


def _sessions(db: Session, now: datetime) -> int:
    """Sessions that can no longer be renewed, with their tokens."""
    over = SignInSessionRow.last_used_at <= now - SESSION_KEPT
    found = db.scalars(select(SignInSessionRow.id).where(over).limit(BATCH)).all()
    for table in (AccessTokenRow, RefreshTokenRow):
        db.execute(delete(table).where(table.session_id.in_(found)))
    db.execute(delete(SignInSessionRow).where(SignInSessionRow.id.in_(found)))
    return len(found)


OVER: Final[tuple[Part, ...]] = (_jobs, _challenges, _sessions)


Row = TypeVar("Row")
SWEPT_AT_ONCE = 100


class Sweep(Protocol):
    """Expires what has waited too long."""

    def run_due(self) -> int:
        """Ends what is due, and returns how many."""
        ...


@dataclass(frozen=True)
class Expiry(Generic[Row]):
    """Rows that expire at a time of their own; readers treat them as expired from then on."""

    store: Store
    clock: Clock
    due: Callable[[datetime], Select[Row]]
    end: Callable[[Session, Row], None]

    def run_due(self) -> int:
        return sweep(self.store, self.due(self.clock()), self.end)


@dataclass(frozen=True)
class Sweeps:
    """Runs several sweeps. A failure does not stop the others; the first one is raised at the end."""

    parts: Sequence[Sweep]

    def run_due(self) -> int:
        count, trouble = 0, []
        for part in self.parts:
            try:
                count += part.run_due()
            except (DatabaseUnavailable, OutcomeUnknown):
                # The others need the database as well.
                raise
            except Exception as error:  # noqa: BLE001 - the others run first; it is raised below
                trouble.append(error)
        if trouble:
            raise trouble[0]
        return count


def sweep(store: Store, due: Select[Row], end: Callable[[Session, Row], None]) -> int:
    """Ends every row that ``due`` finds, and returns how many. A row that was ended must no longer match
    ``due``.
    """
    count = 0
    while done := _sweep_batch(store, due.limit(SWEPT_AT_ONCE), end):
        count += done
    return count


def _sweep_batch(store: Store, due: Select[Row], end: Callable[[Session, Row], None]) -> int:
    """Reads first, without the write lock: most often nothing is due."""
    with store.read() as db:
        if db.scalars(due).first() is None:
            return 0
    with store.write() as db:
        rows = list(db.scalars(due.with_for_update(skip_locked=True)))
        for row in rows:
            end(db, row)
        return len(rows)
