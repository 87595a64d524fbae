"""What the platform tells others: webhooks, the events they are told of, and each event's delivery to each of them."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class Webhook(Base):
    """An address that wants to be told of a workspace's events. ``sealed_secret`` signs what is sent; only the server can open it."""

    __tablename__ = "webhooks"
    __table_args__ = (UniqueConstraint("workspace_id", "url"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    url: Mapped[str]
    kinds: Mapped[list[str]]
    sealed_secret: Mapped[bytes]
    # After a rotation what is sent is signed with the old one as well, for a while.
    sealed_old_secret: Mapped[bytes | None]
    old_secret_until: Mapped[datetime | None]
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    # Since when it is not told any more, and why: by a person, or because nobody has answered for days.
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]
    # Since when every attempt failed, and until when it is left in peace for that.
    failing_since: Mapped[datetime | None]
    quiet_until: Mapped[datetime | None]


class WebhookEvent(Base):
    """Something that happened, written in its own transaction where at least one webhook wants it.

    ``sequence`` counts a workspace's events, in the order in which they happened.
    """

    __tablename__ = "webhook_events"
    __table_args__ = (UniqueConstraint("workspace_id", "sequence"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    sequence: Mapped[int]
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(index=True)


class WebhookDelivery(Base):
    """One event to one webhook. ``response_status`` and ``error`` are the last attempt's.

    ``queued_at``: since when it is tried, again by whoever asked for it again; ``attempts`` are counted from there.
    """

    __tablename__ = "webhook_deliveries"
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
