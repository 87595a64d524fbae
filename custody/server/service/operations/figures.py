"""What waits in the database, in figures: the jobs, the proposals under way, and how far the chains were read."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.store.models import ChainBlock, Job, Proposal

# Those that end without anybody's doing are not counted: there are as many as the platform is old.
UNDER_WAY = (Status.PENDING, Status.SIGNED, Status.STALLED, Status.BROADCASTING)


@dataclass(frozen=True)
class JobFigures:
    """Of one kind: those that are not done. ``oldest_at``: since when the oldest that was not given up is there; ``due_at``: since
    when the one that has been due for longest is in nobody's hands. A mail server or a receiver that is away makes jobs old, and
    workers that are away or hang leave them due.
    """

    kind: str
    waiting: int
    leased: int
    dead: int
    oldest_at: datetime | None
    due_at: datetime | None


@dataclass(frozen=True)
class ProposalFigures:
    """Of one status. ``oldest_at``: since when the one that has been in it for longest is as it is."""

    status: str
    count: int
    oldest_at: datetime


@dataclass(frozen=True)
class ChainFigures:
    """As far as a chain was read."""

    chain: str
    height: int
    block_hash: str
    seen_at: datetime


@dataclass(frozen=True)
class Figures:
    """One snapshot."""

    jobs: tuple[JobFigures, ...]
    proposals: tuple[ProposalFigures, ...]
    chains: tuple[ChainFigures, ...]


def read_figures(db: Session, now: datetime) -> Figures:
    return Figures(_jobs(db, now), _proposals(db), chain_figures(db))


def _jobs(db: Session, now: datetime) -> tuple[JobFigures, ...]:
    is_dead, is_leased, is_early = Job.dead_at.is_not(None), Job.lease_until > now, Job.run_at > now
    query = (
        select(
            Job.kind,
            func.sum(case((is_dead, 0), (is_leased, 0), else_=1)),
            func.sum(case((is_dead, 0), (is_leased, 1), else_=0)),
            func.sum(case((is_dead, 1), else_=0)),
            func.min(case((is_dead, None), else_=Job.created_at)),
            func.min(case((is_dead, None), (is_leased, None), (is_early, None), else_=Job.run_at)),
        )
        .where(Job.done_at.is_(None))
        .group_by(Job.kind)
        .order_by(Job.kind)
    )
    return tuple(
        JobFigures(kind, int(waiting), int(leased), int(dead), oldest, due)
        for kind, waiting, leased, dead, oldest, due in db.execute(query)
    )


def _proposals(db: Session) -> tuple[ProposalFigures, ...]:
    query = (
        select(Proposal.status, func.count(), func.min(Proposal.updated_at))
        .where(Proposal.status.in_([status.value for status in UNDER_WAY]))
        .group_by(Proposal.status)
        .order_by(Proposal.status)
    )
    return tuple(ProposalFigures(*row) for row in db.execute(query))


def chain_figures(db: Session) -> tuple[ChainFigures, ...]:
    highest = (
        select(ChainBlock.chain, func.max(ChainBlock.height).label("height"))
        .group_by(ChainBlock.chain)
        .subquery()
    )
    query = (
        select(ChainBlock)
        .join(highest, (ChainBlock.chain == highest.c.chain) & (ChainBlock.height == highest.c.height))
        .order_by(ChainBlock.chain)
    )
    return tuple(
        ChainFigures(block.chain, block.height, block.block_hash, block.seen_at)
        for block in db.scalars(query)
    )
