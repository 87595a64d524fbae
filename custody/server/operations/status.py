"""The operator's overview: jobs, proposals in progress, chains and leases; and the jobs themselves: what
waits, what was given up and why; retrying and discarding. All of it needs only the database, and no server.

A job's payload is never shown: it contains addresses and texts (P49).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, case, func, or_, select, text, tuple_
from sqlalchemy.orm import Session

from custody.server.audit.checkpoints import SIGNED
from custody.server.audit.log import AuditLog
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.jobs.outbox import BROADCAST, open_job
from custody.server.rules.audit import PLATFORM_CHAIN, Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.rules.lifecycle import REPLACEABLE
from custody.server.store import Store
from custody.server.store.models.bookkeeping import AuditEventRow, JobRow, LeaseRow
from custody.server.store.models.proposals import ProposalRow
from custody.server.store.models.vaults import ChainBlockRow

_SIZES: Final = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}


class JobState(StrEnum):
    """The state of a job that is not done."""

    DUE = "due"
    WAITING = "waiting"
    LEASED = "leased"
    DEAD = "dead"


def _state_at(now: datetime) -> ColumnElement[str]:
    return case(
        (JobRow.dead_at.is_not(None), JobState.DEAD.value),
        (JobRow.lease_until > now, JobState.LEASED.value),
        (JobRow.run_at > now, JobState.WAITING.value),
        else_=JobState.DUE.value,
    )


@dataclass(frozen=True)
class JobFigures:
    """Unfinished jobs of one kind. ``due``: without a worker, the longest since ``due_at``; ``waiting``: for
    their time. ``oldest_at``: the creation of the oldest that was not given up. A mail server
    or receiver that is down makes jobs old; missing workers leave them due.
    """

    kind: str
    due: int
    waiting: int
    leased: int
    dead: int
    oldest_at: datetime | None
    due_at: datetime | None


@dataclass(frozen=True)
class ProposalFigures:
    """Proposals in one status. ``oldest_at``: the last change of the one that has been in it for longest."""

    status: str
    count: int
    oldest_at: datetime


@dataclass(frozen=True)
class ChainFigures:
    """The last block that was read of a chain."""

    chain: str
    height: int
    block_hash: str
    seen_at: datetime


@dataclass(frozen=True)
class StatusFigures:
    """One snapshot."""

    jobs: tuple[JobFigures, ...]
    proposals: tuple[ProposalFigures, ...]
    chains: tuple[ChainFigures, ...]


@dataclass(frozen=True)
class DatabaseStatus:
    kind: str
    size_bytes: int


@dataclass(frozen=True)
class LeaseStatus:
    """``held``: whether a process has the lease now."""

    name: str
    held: bool
    until: datetime


@dataclass(frozen=True)
class PlatformStatus:
    """``checkpoint_at``: the last checkpoint that the audit log records; None where there is none."""

    database: DatabaseStatus
    figures: StatusFigures
    leases: tuple[LeaseStatus, ...]
    checkpoint_at: datetime | None


def read_status(store: Store, now: datetime) -> PlatformStatus:
    signed = select(AuditEventRow.timestamp).where(
        AuditEventRow.chain_id == PLATFORM_CHAIN, AuditEventRow.action == SIGNED.action
    )
    with store.read() as db:
        kind = db.get_bind().dialect.name
        leases = db.scalars(select(LeaseRow).order_by(LeaseRow.name))
        last = db.scalars(signed.order_by(AuditEventRow.position.desc()).limit(1)).first()
        return PlatformStatus(
            DatabaseStatus(kind, int(db.scalar(text(_SIZES[kind])) or 0)),
            read_figures(db, now),
            tuple(LeaseStatus(lease.name, lease.until > now, lease.until) for lease in leases),
            None if last is None else datetime.fromisoformat(last),
        )


def read_figures(db: Session, now: datetime) -> StatusFigures:
    return StatusFigures(job_figures(db, now), _proposals(db), chain_figures(db))


def job_figures(db: Session, now: datetime) -> tuple[JobFigures, ...]:
    state = _state_at(now)
    query: Select[*tuple[Any, ...]] = (
        select(
            JobRow.kind,
            *(func.count().filter(state == each.value) for each in JobState),
            func.min(JobRow.created_at).filter(state != JobState.DEAD.value),
            func.min(JobRow.run_at).filter(state == JobState.DUE.value),
        )
        .where(JobRow.done_at.is_(None))
        .group_by(JobRow.kind)
        .order_by(JobRow.kind)
    )
    return tuple(JobFigures(*row) for row in db.execute(query))


def _proposals(db: Session) -> tuple[ProposalFigures, ...]:
    query = (
        select(ProposalRow.status, func.count(), func.min(ProposalRow.updated_at))
        # Final statuses are left out: their number only grows.
        .where(ProposalRow.status.in_([status.value for status in REPLACEABLE]))
        .group_by(ProposalRow.status)
        .order_by(ProposalRow.status)
    )
    return tuple(ProposalFigures(*row) for row in db.execute(query))


def chain_figures(db: Session) -> tuple[ChainFigures, ...]:
    highest = select(ChainBlockRow.chain, func.max(ChainBlockRow.height)).group_by(ChainBlockRow.chain)
    place = ChainBlockRow.chain, ChainBlockRow.height
    columns = *place, ChainBlockRow.block_hash, ChainBlockRow.seen_at
    query = select(*columns).where(tuple_(*place).in_(highest)).order_by(ChainBlockRow.chain)
    return tuple(ChainFigures(*row) for row in db.execute(query))


# Never given up: a signed payment, whose coins are locked (P14).
ENDLESS: Final = frozenset({BROADCAST})
MAX_JOBS: Final = 100


_JOB: Final = "// job {job}, {kind} of {subject}"
RETRIED = Event("JOB_RETRIED", _JOB, Category.JOBS)
DISCARDED = Event("JOB_DISCARDED", _JOB, Category.JOBS)


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
    query = (
        select(JobRow, _state_at(now))
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
        dead_jobs = db.scalars(dead.order_by(JobRow.id).limit(MAX_JOBS))
        jobs = [job for job in dead_jobs if _newer(db, job) is None]
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
