"""The platform's own records: the audit log, jobs, leases, stored answers, and webhooks with their events."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base, only_where


class AuditHeadRow(Base):
    """The end of a chain. ``chain_id`` is ``platform``, ``organisation:<id>`` or ``workspace:<id>``."""

    chain_id: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    head_hash: Mapped[bytes]


class AuditEventRow(Base):
    """One row of one chain. No foreign keys: a record stays unchanged when its subjects are deleted.

    ``position`` counts from 1 within the chain. Ids and the time are text, as the row is hashed and exported.
    """

    __table_args__ = (
        UniqueConstraint("chain_id", "position"),
        Index("ix_audit_events_by_day", "chain_id", "timestamp", "position"),
        # For filtered pages and their counts.
        Index("ix_audit_events_by_category", "chain_id", "category", "position", "timestamp"),
        Index("ix_audit_events_by_person", "chain_id", "user_uuid", "position", "category", "timestamp"),
    )

    event_uid: Mapped[str] = mapped_column(primary_key=True)
    chain_id: Mapped[str]
    position: Mapped[int]
    org_uid: Mapped[str]
    workspace_uid: Mapped[str]
    timestamp: Mapped[str]
    category: Mapped[str]
    action: Mapped[str]
    description: Mapped[str]
    facts: Mapped[str]
    user_uuid: Mapped[int]
    user_name: Mapped[str]
    role_uid: Mapped[str]
    trace_id: Mapped[str]
    prev_hash: Mapped[bytes]
    event_hash: Mapped[bytes]


_OPEN = "done_at IS NULL AND dead_at IS NULL"


class JobRow(Base):
    """Work to be done at least once. A worker leases it until ``lease_until``; after that any worker may take
    it.

    One open job for each ``kind`` and ``subject``. ``attempts`` counts its leases, so that each has a number;
    ``failures`` counts those in a row that ended without a result: the worker died, or it raised.
    ``dead_at``: given up, for an operator to see.
    """

    __table_args__ = (
        Index("uq_jobs_open", "kind", "subject", unique=True, **only_where(_OPEN)),
        # The next job of a kind is its first entry.
        Index("ix_jobs_due", "kind", "run_at", "id", **only_where(_OPEN)),
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
    # The trace id of the request that caused it.
    trace_id: Mapped[str | None]
    created_at: Mapped[datetime]
    done_at: Mapped[datetime | None]
    dead_at: Mapped[datetime | None]


class LeaseRow(Base):
    """Work that one process does at a time, by name, such as following a chain. After ``until`` any process
    may take it.
    """

    name: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    until: Mapped[datetime]


class RevisionRow(Base):
    """Counts the changes that readers of a workspace's proposals wait for, so that a long poll reads one
    number and not the list.
    """

    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), primary_key=True)
    number: Mapped[int]


class IdempotencyRecordRow(Base):
    """The answer to a creating request, stored with its effect. Scope: user, method, path and the caller's
    key.
    """

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    method: Mapped[str] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_hash: Mapped[bytes]
    response: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(index=True)


class WebhookRow(Base):
    """A URL that subscribes to a workspace's events. ``sealed_secret`` signs deliveries, encrypted by the
    platform.
    """

    __table_args__ = (UniqueConstraint("workspace_id", "url"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    url: Mapped[str]
    kinds: Mapped[list[str]]
    sealed_secret: Mapped[bytes]
    # After a rotation, deliveries are signed with the old secret as well, for a while.
    sealed_old_secret: Mapped[bytes | None]
    old_secret_until: Mapped[datetime | None]
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    # Since when it is disabled, and why: by a member, or because the receiver failed for days.
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]
    # Since when every attempt failed, and until when nothing is sent to it for that reason.
    failing_since: Mapped[datetime | None]
    quiet_until: Mapped[datetime | None]


class WebhookEventRow(Base):
    """An event, written in the transaction of its change, where at least one webhook subscribes to it.

    ``sequence`` counts a workspace's events in the order of their transactions.
    """

    __table_args__ = (UniqueConstraint("workspace_id", "sequence"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    sequence: Mapped[int]
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(index=True)


class WebhookDeliveryRow(Base):
    """One event for one webhook. ``response_status`` and ``error`` are the last attempt's.

    ``queued_at``: the start of the attempts, also after a redelivery; ``attempts`` are counted from there.
    """

    __table_args__ = (
        UniqueConstraint("webhook_id", "event_id"),
        Index(None, "webhook_id", "created_at"),
        CheckConstraint("status IN ('pending', 'delivered', 'failed')", name="status"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id"))
    event_id: Mapped[str] = mapped_column(ForeignKey("webhook_events.id"), index=True)
    status: Mapped[str]
    attempts: Mapped[int]
    response_status: Mapped[int | None]
    error: Mapped[str | None]
    attempted_at: Mapped[datetime | None]
    queued_at: Mapped[datetime]
    next_attempt_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(index=True)
