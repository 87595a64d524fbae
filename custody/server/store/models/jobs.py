"""The outbox, written in the transaction of what it follows; who does what alone; the answers kept for repeated requests."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base

_OPEN = text("done_at IS NULL AND dead_at IS NULL")


class Job(Base):
    """Work to be done at least once. A worker leases it until ``lease_until``; a lapsed lease is anybody's.

    One open job for each ``kind`` and ``subject``. ``attempts`` counts its leases, so that each has a number; ``failures``
    those in a row that ended without an answer: the worker died, or it raised. ``dead_at``: given up, for an operator to see.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index("uq_jobs_open", "kind", "subject", unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN),
        # The next one of a kind is its first entry, however many wait behind it.
        Index("ix_jobs_due", "kind", "run_at", "id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject: Mapped[str]
    payload: Mapped[dict[str, Any]]
    run_at: Mapped[datetime]
    attempts: Mapped[int]
    failures: Mapped[int]
    lease_owner: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    last_error: Mapped[str | None]
    # Of the request that it came from: one id finds the whole story in the logs.
    trace_id: Mapped[str | None]
    created_at: Mapped[datetime]
    done_at: Mapped[datetime | None]
    dead_at: Mapped[datetime | None]


class Lease(Base):
    """Work that one process does at a time, by name: following a chain. A lapsed lease is anybody's."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    until: Mapped[datetime]


class Revision(Base):
    """Counts what readers of a workspace's proposals wait for, so that a long poll asks for one number and not for its list."""

    __tablename__ = "revisions"

    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), primary_key=True)
    number: Mapped[int]


class IdempotencyRecord(Base):
    """The answer to a creating request, stored with its effect. Scope: user, method, path and the caller's key."""

    __tablename__ = "idempotency_records"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    method: Mapped[str] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_hash: Mapped[bytes]
    response: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(index=True)
