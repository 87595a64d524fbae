"""The operator's view of the jobs: what waits, what was given up and why; retrying and discarding.

A job's payload is never shown: it contains addresses and texts (P49).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, case, or_, select
from sqlalchemy.orm import Session

from custody.server.audit.log import AuditLog
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.jobs.outbox import BROADCAST
from custody.server.operations.status import JobFigures
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.rules.ports import Clock
from custody.server.store.models import JobRow

# Never given up: a signed payment, whose coins are locked (P14).
ENDLESS: Final = frozenset({BROADCAST})
MAX_JOBS: Final = 100


_JOB: Final = "job {job}, {kind} of {subject}"
RETRIED = Event("JOB_RETRIED", _JOB, category=Category.JOBS)
DISCARDED = Event("JOB_DISCARDED", _JOB, category=Category.JOBS)


class JobState(StrEnum):
    """The state of a job that is not done."""

    DUE = "due"
    WAITING = "waiting"
    LEASED = "leased"
    DEAD = "dead"


@dataclass(frozen=True)
class JobLine:
    """One job. ``run_at``: when it is tried next; ``error``: why the last try failed."""

    id: int
    kind: str
    subject: str
    state: JobState
    attempts: int
    created_at: datetime
    run_at: datetime
    error: str | None


class JobAdministration:
    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def troubled(self, db: Session, *, after: int = 0) -> list[JobLine]:
        """Jobs that were given up, and those whose last try failed, by id."""
        now = self._clock()
        query = (
            select(JobRow, _state(now))
            .where(
                JobRow.done_at.is_(None),
                or_(JobRow.dead_at.is_not(None), JobRow.last_error.is_not(None)),
                JobRow.id > after,
            )
            .order_by(JobRow.id)
            .limit(MAX_JOBS)
        )
        return [_line(job, JobState(name)) for job, name in db.execute(query)]

    def retry(self, db: Session, job_id: int) -> JobLine:
        """Makes the job due at once, with no failures counted. Raises NotFound, StateConflict."""
        job = _find(db, job_id)
        self._revive(db, job)
        self._record(db, RETRIED, job)
        return _line(job, JobState.DUE)

    def retry_kind(self, db: Session, kind: str) -> list[JobLine]:
        """Retries all of a kind that were given up, at most `MAX_JOBS`. Raises Invalid, StateConflict."""
        dead = (
            select(JobRow)
            .where(JobRow.kind == kind, JobRow.dead_at.is_not(None))
            .order_by(JobRow.id)
            .limit(MAX_JOBS)
        )
        jobs = [job for job in db.scalars(dead) if _newer(db, job) is None]
        if not jobs:
            raise Invalid(f"No job of the kind {kind!r} was given up.")
        for job in jobs:
            self._revive(db, job)
        for job in jobs:
            self._record(db, RETRIED, job)
        return [_line(job, JobState.DUE) for job in jobs]

    def discard(self, db: Session, job_id: int) -> JobLine:
        """Deletes the job; the audit log keeps that. Raises NotFound, StateConflict."""
        job = _find(db, job_id)
        if job.dead_at is None and job.kind in ENDLESS:
            raise StateConflict(
                f"Job {job.id} cannot be discarded: a signed payment needs it. It ends when the "
                "network accepts the payment or its proposal ends."
            )
        if job.dead_at is None and job.lease_owner is not None:
            raise StateConflict(f"A worker is running job {job.id}: try again in a moment.")
        line = _line(job, JobState.DUE if job.dead_at is None else JobState.DEAD)
        db.delete(job)
        db.flush()
        self._record(db, DISCARDED, job)
        return line

    def _revive(self, db: Session, job: JobRow) -> None:
        if job.dead_at is None and job.lease_owner is not None:
            raise StateConflict(f"A worker is running job {job.id}: try again in a moment.")
        newer = _newer(db, job)
        if newer is not None:
            raise StateConflict(f"Job {newer} has replaced job {job.id}: look at that one.")
        job.dead_at, job.failures, job.run_at = None, 0, self._clock()
        db.flush()

    def _record(self, db: Session, event: Event, job: JobRow) -> None:
        self._audit.record(db, OPERATOR, event, None, job=job.id, kind=job.kind, subject=job.subject)


def _state(now: datetime) -> ColumnElement[str]:
    return case(
        (JobRow.dead_at.is_not(None), JobState.DEAD.value),
        (and_(JobRow.lease_owner.is_not(None), JobRow.lease_until > now), JobState.LEASED.value),
        (JobRow.run_at > now, JobState.WAITING.value),
        else_=JobState.DUE.value,
    )


def _find(db: Session, job_id: int) -> JobRow:
    job = db.get(JobRow, job_id, with_for_update=True)
    if job is None or job.done_at is not None:
        raise NotFound(f"There is no open or dead job {job_id}.")
    return job


def _newer(db: Session, job: JobRow) -> int | None:
    """The id of another open job for the same subject: there is at most one."""
    if job.dead_at is None:
        return None
    query: Select[int] = select(JobRow.id).where(
        JobRow.kind == job.kind,
        JobRow.subject == job.subject,
        JobRow.done_at.is_(None),
        JobRow.dead_at.is_(None),
    )
    return db.scalar(query)


def _line(job: JobRow, state: JobState) -> JobLine:
    return JobLine(
        job.id, job.kind, job.subject, state, job.attempts, job.created_at, job.run_at, job.last_error
    )


def row_of(line: JobLine) -> tuple[str, ...]:
    """For a person's table: id, state, job, how often it was tried, the last error."""
    tried = f"{line.attempts} time{'' if line.attempts == 1 else 's'}"
    return str(line.id), line.state, f"{line.kind} of {line.subject}", tried, line.error or ""


def summary(figures: Sequence[JobFigures]) -> str:
    """One line for each kind."""
    if not figures:
        return "Nothing waits, and nothing was given up."
    return "\n".join(
        f"{each.kind}: {each.due} due, {each.waiting} waiting, {each.leased} leased, {each.dead} dead"
        + (f", the oldest since {each.oldest_at:%Y-%m-%d %H:%M:%S} UTC" if each.oldest_at else "")
        for each in figures
    )
