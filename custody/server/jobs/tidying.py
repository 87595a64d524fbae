"""Housekeeping: expires what has waited too long, and deletes rows that are no longer needed.

Unauthenticated callers can cause rows to be stored, with addresses in them: those must not stay for ever.
Each transaction takes one batch.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, or_, select, tuple_
from sqlalchemy.orm import Session

from custody.server.errors import DatabaseUnavailable, OutcomeUnknown
from custody.server.requests.idempotency import RETENTION
from custody.server.rules.credentials import ACCESS_LIFETIME, OTP_WINDOW, REFRESH_LIFETIME
from custody.server.rules.ports import Clock
from custody.server.store import Store
from custody.server.store.models import (
    AccessTokenRow,
    IdempotencyRecordRow,
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

    def __call__(self) -> int:
        """Deletes what is over, and returns how many rows that was."""
        now, count = self._clock(), 0
        if self._done_at is not None and self._done_at <= now < self._done_at + INTERVAL:
            return 0
        self._done_at = now
        for part in self._parts:
            done = BATCH
            while done >= BATCH:
                with self._store.write() as db:
                    done = part(db, now)
                count += done
        return count


def delete_where(table: Any, over: Callable[[datetime], ColumnElement[bool]]) -> Part:
    """``over``: which of the table's rows are over at that moment."""
    own = table.__table__.primary_key

    def delete_batch(db: Session, now: datetime) -> int:
        keys = db.execute(select(*own).where(over(now)).limit(BATCH)).all()
        gone = delete(table).where(tuple_(*own).in_(keys))
        db.execute(gone.execution_options(synchronize_session=False))
        return len(keys)

    return delete_batch


def _sessions(db: Session, now: datetime) -> int:
    """Sessions that can no longer be renewed, with their tokens."""
    over = SignInSessionRow.last_used_at <= now - SESSION_KEPT
    session_ids = db.scalars(select(SignInSessionRow.id).where(over).limit(BATCH)).all()
    for table in (AccessTokenRow, RefreshTokenRow):
        db.execute(delete(table).where(table.session_id.in_(session_ids)))
    db.execute(delete(SignInSessionRow).where(SignInSessionRow.id.in_(session_ids)))
    return len(session_ids)


OVER: Final[tuple[Part, ...]] = (
    # Done or given up.
    delete_where(
        JobRow, lambda now: or_(JobRow.done_at <= now - DONE_JOB_KEPT, JobRow.dead_at <= now - DEAD_JOB_KEPT)
    ),
    # They no longer count for the account's limits.
    delete_where(OtpChallengeRow, lambda now: OtpChallengeRow.created_at <= now - OTP_WINDOW),
    _sessions,
    # Answers that are repeated no more.
    delete_where(IdempotencyRecordRow, lambda now: IdempotencyRecordRow.created_at <= now - RETENTION),
)


SWEPT_AT_ONCE = 100


# Ends what is due, and returns how many.
Sweep = Callable[[], int]


def sweep_all(parts: Sequence[Sweep]) -> int:
    """Runs several sweeps. A failure does not stop the others; the first one is raised at the end."""
    count, trouble = 0, []
    for part in parts:
        try:
            count += part()
        except (DatabaseUnavailable, OutcomeUnknown):
            # The others need the database as well.
            raise
        except Exception as error:  # noqa: BLE001 - the others run first; it is raised below
            trouble.append(error)
    if trouble:
        raise trouble[0]
    return count


def end_due(
    store: Store, clock: Clock, at: Any, which: ColumnElement[bool], end: Callable[[Session, Any], None]
) -> int:
    """Ends every row of ``which`` whose time ``at``, a column, has come, and returns how many. A row that was
    ended must no longer be one of them; readers treat it as ended from its time on.
    """
    due = select(at.class_).where(which, at <= clock()).order_by(at)
    count, over = 0, due.limit(SWEPT_AT_ONCE)
    while True:
        # Without the write lock: most often nothing is due.
        with store.read() as db:
            if db.scalars(over).first() is None:
                return count
        with store.write() as db:
            rows = db.scalars(over.with_for_update(skip_locked=True)).all()
            for row in rows:
                end(db, row)
        if not rows:
            return count
        count += len(rows)
