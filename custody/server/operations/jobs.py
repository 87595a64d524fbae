"""The operator's view of the jobs: what waits, what was given up and why; retrying and discarding.

A job's payload is never shown: it contains addresses and texts (P49).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import and_, case, or_, select
from sqlalchemy.orm import Session

from custody.server.audit.log import AuditLog
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.jobs.outbox import BROADCAST, open_job
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.store.models import JobRow

# Never given up: a signed payment, whose coins are locked (P14).
ENDLESS: Final = frozenset({BROADCAST})
MAX_JOBS: Final = 100


_JOB: Final = "// job {job}, {kind} of {subject}"
RETRIED = Event("JOB_RETRIED", _JOB, Category.JOBS)
DISCARDED = Event("JOB_DISCARDED", _JOB, Category.JOBS)


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


def troubled(db: Session, now: datetime, *, after: int = 0) -> list[JobLine]:
    """Jobs that were given up, and those whose last try failed, by id."""
    state = case(
        (JobRow.dead_at.is_not(None), JobState.DEAD.value),
        (and_(JobRow.lease_owner.is_not(None), JobRow.lease_until > now), JobState.LEASED.value),
        (JobRow.run_at > now, JobState.WAITING.value),
        else_=JobState.DUE.value,
    )
    query = (
        select(JobRow, state)
        .where(
            JobRow.done_at.is_(None),
            or_(JobRow.dead_at.is_not(None), JobRow.last_error.is_not(None)),
            JobRow.id > after,
        )
        .order_by(JobRow.id)
        .limit(MAX_JOBS)
    )
    return [_line(job, JobState(name)) for job, name in db.execute(query)]


def retry(db: Session, audit: AuditLog, now: datetime, job_id: int | None, kind: str = "") -> list[JobLine]:
    """Makes the job due at once, with no failures counted; without one, all of the kind that were given up,
    at most `MAX_JOBS`. Raises NotFound, Invalid, StateConflict.
    """
    if job_id is not None:
        jobs = [_find(db, job_id)]
    else:
        dead = select(JobRow).where(JobRow.kind == kind, JobRow.dead_at.is_not(None))
        found = db.scalars(dead.order_by(JobRow.id).limit(MAX_JOBS))
        jobs = [job for job in found if _newer(db, job) is None]
        if not jobs:
            raise Invalid(f"No job of the kind {kind!r} was given up.")
    for job in jobs:
        _require_idle(job)
        newer = _newer(db, job)
        if newer is not None:
            raise StateConflict(f"Job {newer} has replaced job {job.id}: look at that one.")
        job.dead_at, job.failures, job.run_at = None, 0, now
        db.flush()
    for job in jobs:
        audit.record(db, OPERATOR, RETRIED, None, job=job.id, kind=job.kind, subject=job.subject)
    return [_line(job, JobState.DUE) for job in jobs]


def discard(db: Session, audit: AuditLog, job_id: int) -> JobLine:
    """Deletes the job; the audit log keeps that. Raises NotFound, StateConflict."""
    job = _find(db, job_id)
    if job.dead_at is None and job.kind in ENDLESS:
        raise StateConflict(
            f"Job {job.id} cannot be discarded: a signed payment needs it. It ends when the "
            "network accepts the payment or its proposal ends."
        )
    _require_idle(job)
    line = _line(job, JobState.DUE if job.dead_at is None else JobState.DEAD)
    db.delete(job)
    db.flush()
    audit.record(db, OPERATOR, DISCARDED, None, job=job.id, kind=job.kind, subject=job.subject)
    return line


def _require_idle(job: JobRow) -> None:
    if job.dead_at is None and job.lease_owner is not None:
        raise StateConflict(f"A worker is running job {job.id}: try again in a moment.")


def _find(db: Session, job_id: int) -> JobRow:
    job = db.get(JobRow, job_id, with_for_update=True)
    if job is None or job.done_at is not None:
        raise NotFound(f"There is no open or dead job {job_id}.")
    return job


def _newer(db: Session, job: JobRow) -> int | None:
    """The id of another open job for the same subject: there is at most one."""
    if job.dead_at is None:
        return None
    return open_job(db, job.kind, job.subject)


def _line(job: JobRow, state: JobState) -> JobLine:
    return JobLine(
        job.id, job.kind, job.subject, state, job.attempts, job.created_at, job.run_at, job.last_error
    )
