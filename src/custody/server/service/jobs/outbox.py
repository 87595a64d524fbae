"""The outbox: work written in the transaction of what it follows, done at least once by whichever worker leases it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from custody.server.domain.ports import Clock
from custody.server.store import Store
from custody.server.store.models import Job

# A worker that has not answered for this long is dead: the longest call to a node ends well before.
LEASE = timedelta(seconds=60)
FIRST_RETRY = timedelta(seconds=1)
MAX_RETRY = timedelta(seconds=60)


@dataclass(frozen=True)
class Task:
    """A leased job as its handler sees it. `attempts` counts this one too."""

    id: int
    kind: str
    subject: str
    payload: dict[str, Any]
    attempts: int


@dataclass(frozen=True)
class Done:
    """The job is finished. `result` is kept in its payload for whoever asked for it."""

    result: dict[str, Any] | None = None


@dataclass(frozen=True)
class Again:
    """Not yet: try again, later and later."""

    reason: str


@dataclass(frozen=True)
class Dead:
    """It will never work; an operator sees it."""

    reason: str


Verdict = Done | Again | Dead
# What the handler found out outside any transaction, applied in the one that closes the job.
Finish = Callable[[Session], Verdict]
Handler = Callable[[Task], Finish]


def enqueue(
    db: Session, kind: str, subject: str, now: datetime, payload: dict[str, Any] | None = None
) -> None:
    """Adds a job in the caller's transaction; where one of the kind and subject is open already, makes it due."""
    open_job = db.scalars(
        select(Job).where(
            Job.kind == kind, Job.subject == subject, Job.done_at.is_(None), Job.dead_at.is_(None)
        )
    ).one_or_none()
    if open_job is not None:
        open_job.run_at = min(open_job.run_at, now)
        return
    db.add(
        Job(
            kind=kind,
            subject=subject,
            payload=payload or {},
            run_at=now,
            attempts=0,
            created_at=now,
        )
    )
    db.flush()


class Outbox:
    """One worker's view of the jobs. `owner` differs between workers; `handlers` by kind."""

    def __init__(self, store: Store, clock: Clock, owner: str, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._handlers = handlers

    def run_due(self) -> int:
        """Does every job that is due now, one after the other; returns how many."""
        count = 0
        while (task := self._lease()) is not None:
            self._perform(task)
            count += 1
        return count

    def _perform(self, task: Task) -> None:
        finish = self._handlers[task.kind](task)
        with self._store.write() as db:
            job = db.get(Job, task.id, with_for_update=True)
            # Another worker has taken over a lapsed lease: what it finds is what counts.
            if job is not None and job.lease_owner == self._owner and job.done_at is None:
                self._close(job, finish(db))

    def _close(self, job: Job, verdict: Verdict) -> None:
        now = self._clock()
        job.lease_owner, job.lease_until = None, None
        match verdict:
            case Done(result):
                job.done_at = now
                if result is not None:
                    job.payload = {**job.payload, "result": result}
            case Again(reason):
                job.last_error = reason
                job.run_at = now + min(MAX_RETRY, FIRST_RETRY * 2 ** min(job.attempts - 1, 10))
            case Dead(reason):
                job.last_error = reason
                job.dead_at = now

    def _lease(self) -> Task | None:
        now = self._clock()
        # A snapshot first: an idle worker does not queue at the write lock.
        with self._store.read() as db:
            if db.scalars(self._due(now)).first() is None:
                return None
        with self._store.write() as db:
            job = db.scalars(self._due(now).with_for_update(skip_locked=True)).first()
            if job is None:
                return None
            job.lease_owner, job.lease_until = self._owner, now + LEASE
            job.attempts += 1
            return Task(job.id, job.kind, job.subject, dict(job.payload), job.attempts)

    def _due(self, now: datetime) -> Select[Job]:
        return (
            select(Job)
            .where(
                Job.kind.in_(list(self._handlers)),
                Job.done_at.is_(None),
                Job.dead_at.is_(None),
                Job.run_at <= now,
                or_(Job.lease_until.is_(None), Job.lease_until <= now),
            )
            .order_by(Job.run_at, Job.id)
            .limit(1)
        )
