"""An organisation's rule about second persons, and the changes that wait for one."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class SecondPersonRule(Base):
    """The rule is on for organisations with a row."""

    __tablename__ = "second_person_rules"

    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"), primary_key=True)
    role_name: Mapped[str]
    cooling_off_hours: Mapped[int]
    set_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    set_at: Mapped[datetime]


class PendingChange(Base):
    """The recorded request of a call: ``path`` and ``body``. Kept after it was decided."""

    __tablename__ = "pending_changes"
    __table_args__ = (
        Index("ix_pending_changes_by_age", "organisation_id", "status", "asked_at"),
        # For the sweep of expired changes, several times a second.
        Index(None, "status", "expires_at"),
        CheckConstraint("status IN ('PENDING', 'APPLIED', 'DECLINED', 'EXPIRED')", name="status"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"))
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    path: Mapped[str]
    body: Mapped[dict[str, Any]]
    status: Mapped[str]
    asked_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    asked_by_name: Mapped[str]
    asked_at: Mapped[datetime]
    not_before: Mapped[datetime]
    expires_at: Mapped[datetime]
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    decided_by_name: Mapped[str | None]
    decided_at: Mapped[datetime | None]
    reason: Mapped[str | None]
