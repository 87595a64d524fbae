"""The outbox: jobs that are stored in the transaction of their cause, and done at least once by the worker
that leases them.
"""

import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

import structlog
from sqlalchemy import and_, bindparam, insert, or_, select
from sqlalchemy.orm import Session

from custody.server.errors import (
    ChainUnavailable,
    CustodyError,
    DatabaseUnavailable,
    OutcomeUnknown,
)
from custody.server.jobs.leases import MAX_HOLD
from custody.server.rules.defaults import LEASE
from custody.server.rules.ports import Clock
from custody.server.store import Store
from custody.server.store.models.bookkeeping import JobRow

log = structlog.get_logger()

# After this many failures in a row (the worker died, or the handler raised) the job is given up.
MAX_FAILURES: Final = 10
FIRST_RETRY: Final = timedelta(seconds=1)
# After a node or a mail server is back, waiting jobs run within this time.
MAX_RETRY: Final = timedelta(seconds=60)
# Beyond this many doublings the longest delay is reached anyway.
_MAX_DOUBLINGS: Final = 10
# The kind of job that broadcasts a final transaction. Its subject is the proposal's id.
BROADCAST: Final = "broadcast"
# The kind that completes or ends what waits, after its approvers have changed. Its subject is such an id too.
COMPLETION: Final = "completion"
# Another worker has taken over in the meantime.
LOST: Final = "lost"


@dataclass(frozen=True)
class Task:
    """A leased job as its handler sees it. `attempts` counts this one too."""

    id: int
    kind: str
    subject: str
    payload: dict[str, Any]
    attempts: int
    trace_id: str | None = None


@dataclass(frozen=True)
class JobDone:
    """The job is finished."""

    outcome: ClassVar = "done"


@dataclass(frozen=True)
class Again:
    """Try again, at growing intervals, or ``after`` a time that the handler chooses."""

    outcome: ClassVar = "again"
    reason: str
    after: timedelta | None = None


@dataclass(frozen=True)
class Dead:
    """It will never succeed; an operator has to look at it."""

    outcome: ClassVar = "dead"
    reason: str


@dataclass(frozen=True)
class Failed:
    """The handler raised: an error of ours."""

    outcome: ClassVar = "failed"
    reason: str


Verdict = JobDone | Again | Dead | Failed
# A handler works outside any transaction; its result is applied in the one that closes the job.
Finish = Callable[[Session], Verdict]
Handler = Callable[[Task], Finish]


def enqueue(
    db: Session, kind: str, subject: str, now: datetime, payload: dict[str, Any] | None = None
) -> None:
    """Adds a job in the caller's transaction. Where one of this kind and subject is open, it becomes due.

    The job gets the trace id of the log's context: that of the request or of another job.
    """
    open_id = open_job(db, kind, subject)
    if open_id is not None:
        job = db.get_one(JobRow, open_id)
        job.run_at = min(job.run_at, now)
        return
    db.add(JobRow(**_fresh(kind, subject, now, payload)))


def open_job(db: Session, kind: str, subject: str) -> int | None:
    """The id of the one such job that is waiting or running."""
    return db.scalar(_OPEN, {"kind": kind, "subject": subject})


# Neither done nor given up.
IS_OPEN: Final = and_(JobRow.done_at.is_(None), JobRow.dead_at.is_(None))
_OPEN = select(JobRow.id).where(
    JobRow.kind == bindparam("kind"), JobRow.subject == bindparam("subject"), IS_OPEN
)


def enqueue_new(db: Session, kind: str, subjects: Collection[str], now: datetime) -> None:
    """Adds jobs for subjects that were created in this transaction, so that none can have a job yet."""
    if subjects:
        db.execute(insert(JobRow), [_fresh(kind, subject, now) for subject in subjects])


def _fresh(kind: str, subject: str, now: datetime, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "kind": kind,
        "subject": subject,
        "payload": payload or {},
        "run_at": now,
        "attempts": 0,
        "failures": 0,
        "trace_id": structlog.contextvars.get_contextvars().get("trace_id"),
        "created_at": now,
    }


@dataclass(eq=False)
class Outbox:
    """The jobs of one worker. `owner` is its unique name; it does the kinds that have `handlers`. `endless`
    kinds are never given up. Thread-safe.
    """

    store: Store
    clock: Clock
    owner: str
    handlers: Mapping[str, Handler]
    endless: Collection[str] = ()
    span: timedelta = LEASE
    _held: dict[int, tuple[Task, datetime]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run_due(self) -> int:
        """Does every job that is due, one after the other; returns how many."""
        count = 0
        while (task := self.lease()) is not None:
            self.perform(task)
            count += 1
        return count

    def lease(self) -> Task | None:
        """The job that is due first, leased to this worker."""
        now = self.clock()
        # A snapshot first, so that an idle worker does not wait for the write lock.
        with self.store.read() as db:
            if self._first(db, now) is None:
                return None
        with self.store.write() as db:
            task = self._take(db, now)
        if task is not None:
            with self._lock:
                self._held[task.id] = task, now
        return task

    def perform(self, task: Task) -> None:
        """Raises DatabaseUnavailable, OutcomeUnknown: then the lease lapses, and the job is done again."""
        started = time.perf_counter()
        outcome = "interrupted"
        trace = {} if task.trace_id is None else {"trace_id": task.trace_id}
        with structlog.contextvars.bound_contextvars(**trace):
            try:
                outcome = self._attempt(task)
            finally:
                with self._lock:
                    self._held.pop(task.id, None)
                self._tell(task, outcome, time.perf_counter() - started)

    def _attempt(self, task: Task) -> str:
        """The outcome, for the log and the metrics."""
        try:
            return self._close(task, self.handlers[task.kind](task))
        except (DatabaseUnavailable, OutcomeUnknown):
            raise
        except ChainUnavailable as error:
            again = Again(error.detail)
            return self._close(task, lambda _db: again)
        except Exception as error:
            log.exception("job failed", kind=task.kind, job=task.id, subject=task.subject)
            reason = _in_words(error)
            return self._close(task, lambda _db: Failed(reason))

    def _tell(self, task: Task, outcome: str, seconds: float) -> None:
        meters = self.store.meters
        meters.jobs.labels(task.kind, outcome).inc()
        meters.job_seconds.labels(task.kind).observe(seconds)
        log.info(
            "job",
            kind=task.kind,
            job=task.id,
            attempt=task.attempts,
            outcome=outcome,
            milliseconds=round(seconds * 1000, 1),
        )

    def renew(self) -> None:
        """Called from another thread while jobs run: a lease may be shorter than the longest call to a
        node.
        """
        now = self.clock()
        with self._lock:
            held = [
                task
                for task, since in self._held.values()
                if since + self.span / 3 <= now <= since + MAX_HOLD
            ]
        self._lease_again(held, self.owner, now + self.span)

    def release(self) -> None:
        """Gives back the running jobs, so that other workers need not wait. Their results are discarded."""
        with self._lock:
            held = [task for task, _ in self._held.values()]
        self._lease_again(held, None, None)

    def _lease_again(self, held: Sequence[Task], owner: str | None, until: datetime | None) -> None:
        if held:
            with self.store.write() as db:
                for task in held:
                    job = self._still_ours(db, task)
                    if job is not None:
                        job.lease_owner, job.lease_until = owner, until

    def _take(self, db: Session, now: datetime) -> Task | None:
        while (job := self._first(db, now)) is not None:
            try:
                if self._may_be_tried(job, now):
                    task = Task(
                        job.id, job.kind, job.subject, dict(job.payload), job.attempts + 1, job.trace_id
                    )
                    job.lease_owner, job.lease_until = self.owner, now + self.span
                    job.attempts = task.attempts
                    return task
            except (TypeError, ValueError):
                # Altered outside the platform: the other jobs must not wait for it (P102).
                job.dead_at, job.last_error = now, "What is stored of it cannot be read."
                db.flush()
        return None

    def _may_be_tried(self, job: JobRow, now: datetime) -> bool:
        """Whether the job may run now. A lease that lapsed open means that its worker died, which counts as a
        failure. Only the first one is not delayed: a job that kills its workers must not kill one after
        another.
        """
        if job.lease_until is None:
            return True
        job.lease_owner, job.lease_until = None, None
        self._count_failure(job, "The worker ended in the middle of it.", now)
        job.run_at = now if job.failures == 1 else job.run_at
        return job.dead_at is None and job.run_at <= now

    def _close(self, task: Task, finish: Finish) -> str:
        with self.store.write() as db:
            job = self._still_ours(db, task)
            if job is None:
                return LOST
            verdict = finish(db)
            self._write(job, verdict)
            return verdict.outcome

    def _still_ours(self, db: Session, task: Task) -> JobRow | None:
        """The job; None where another worker, or another thread of this one, has taken over a lapsed lease.
        The number of attempts tells leases of one worker apart.
        """
        job = db.get(JobRow, task.id, with_for_update=True)
        ours = job is not None and (job.lease_owner, job.attempts) == (self.owner, task.attempts)
        return job if ours else None

    def _write(self, job: JobRow, verdict: Verdict) -> None:
        now = self.clock()
        job.lease_owner, job.lease_until = None, None
        if isinstance(verdict, Failed):
            self._count_failure(job, verdict.reason, now)
            return
        job.failures = 0
        match verdict:
            case JobDone():
                job.done_at = now
            case Again(reason, after):
                job.last_error = reason
                job.run_at = now + (delay_after(job.attempts, str(job.id)) if after is None else after)
            case Dead(reason):
                job.last_error = reason
                job.dead_at = now

    def _count_failure(self, job: JobRow, words: str, now: datetime) -> None:
        job.failures += 1
        job.last_error = words
        job.run_at = now + delay_after(job.failures, str(job.id))
        if job.failures >= MAX_FAILURES and job.kind not in self.endless:
            job.dead_at = now
            log.error("job given up", kind=job.kind, job=job.id, subject=job.subject, reason=words)

    def _first(self, db: Session, now: datetime) -> JobRow | None:
        """The job that is due first, found by one index lookup for each kind."""
        due = (
            select(JobRow)
            .where(
                IS_OPEN,
                JobRow.run_at <= now,
                or_(
                    JobRow.lease_until.is_(None),
                    JobRow.lease_until <= now,
                    # Later than any lease ends: the clock that wrote it was wrong.
                    JobRow.lease_until > now + 2 * self.span,
                ),
            )
            .order_by(JobRow.run_at, JobRow.id)
            .limit(1)
        )
        heads = (db.scalars(due.where(JobRow.kind == kind)).first() for kind in self.handlers)
        # An altered time (`store.models.base`) sorts first, and its job is given up.
        first = datetime.min.replace(tzinfo=UTC)
        return min(
            (job for job in heads if job is not None),
            key=lambda job: (job.run_at if isinstance(job.run_at, datetime) else first, job.id),
            default=None,
        )


def delay_after(attempts: int, key: str) -> timedelta:
    """The delay after ``attempts`` tries, one at least: between half and all of a delay that doubles, so that
    jobs that failed together are spread. The fraction is derived from ``key`` and ``attempts``.
    """
    whole = min(MAX_RETRY, FIRST_RETRY * float(2 ** min(attempts - 1, _MAX_DOUBLINGS)))
    spread = int.from_bytes(sha256(f"{key}:{attempts}".encode()).digest()[:4])
    return whole * (0.5 + spread / 2**33)


def _in_words(error: Exception) -> str:
    """An error's text only where it was written for users: others may contain secrets (P49)."""
    if isinstance(error, CustodyError):
        return error.detail
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}."
