"""The operator's overview: jobs, proposals in progress, chains and leases. It reads only the database, so it
works where no server runs.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import case, func, select, text
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus
from custody.server.audit.checkpoints import SIGNED
from custody.server.rules.audit import PLATFORM_CHAIN
from custody.server.store import Store
from custody.server.store.models import AuditEventRow, ChainBlockRow, JobRow, LeaseRow, ProposalRow

# Final statuses are left out: their number only grows.
UNDER_WAY = (
    ProposalStatus.PENDING,
    ProposalStatus.SIGNED,
    ProposalStatus.STALLED,
    ProposalStatus.BROADCASTING,
)

_SIZES: Final = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}


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
    is_dead, is_leased, is_early = JobRow.dead_at.is_not(None), JobRow.lease_until > now, JobRow.run_at > now
    query = (
        select(
            JobRow.kind,
            func.sum(case((is_dead, 0), (is_leased, 0), (is_early, 0), else_=1)),
            func.sum(case((is_dead, 0), (is_leased, 0), (is_early, 1), else_=0)),
            func.sum(case((is_dead, 0), (is_leased, 1), else_=0)),
            func.sum(case((is_dead, 1), else_=0)),
            func.min(case((is_dead, None), else_=JobRow.created_at)),
            func.min(case((is_dead, None), (is_leased, None), (is_early, None), else_=JobRow.run_at)),
        )
        .where(JobRow.done_at.is_(None))
        .group_by(JobRow.kind)
        .order_by(JobRow.kind)
    )
    return tuple(
        JobFigures(kind, int(due), int(waiting), int(leased), int(dead), oldest, since)
        for kind, due, waiting, leased, dead, oldest, since in db.execute(query)
    )


def _proposals(db: Session) -> tuple[ProposalFigures, ...]:
    query = (
        select(ProposalRow.status, func.count(), func.min(ProposalRow.updated_at))
        .where(ProposalRow.status.in_([status.value for status in UNDER_WAY]))
        .group_by(ProposalRow.status)
        .order_by(ProposalRow.status)
    )
    return tuple(ProposalFigures(*row) for row in db.execute(query))


def chain_figures(db: Session) -> tuple[ChainFigures, ...]:
    highest = (
        select(ChainBlockRow.chain, func.max(ChainBlockRow.height).label("height"))
        .group_by(ChainBlockRow.chain)
        .subquery()
    )
    query = (
        select(ChainBlockRow)
        .join(highest, (ChainBlockRow.chain == highest.c.chain) & (ChainBlockRow.height == highest.c.height))
        .order_by(ChainBlockRow.chain)
    )
    return tuple(
        ChainFigures(block.chain, block.height, block.block_hash, block.seen_at)
        for block in db.scalars(query)
    )
