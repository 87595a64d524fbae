"""The audit log: hash-chained events, and the head of each chain."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class AuditHead(Base):
    """Where a chain ends. ``chain_id`` is ``platform``, ``organisation:<id>`` or ``workspace:<id>``."""

    __tablename__ = "audit_heads"

    chain_id: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    head_hash: Mapped[bytes]


class AuditEvent(Base):
    """One row of one chain. No foreign keys: what is recorded stays as it was, whatever happens to its subjects.

    ``position`` counts from 1 within the chain. Ids are text, as the row is hashed and exported.
    """

    __tablename__ = "audit_events"
    __table_args__ = (UniqueConstraint("chain_id", "position"), Index(None, "chain_id", "timestamp"))

    event_uid: Mapped[str] = mapped_column(primary_key=True)
    chain_id: Mapped[str]
    position: Mapped[int]
    org_uid: Mapped[str]
    workspace_uid: Mapped[str]
    timestamp: Mapped[datetime]
    category: Mapped[str]
    action: Mapped[str]
    description: Mapped[str]
    user_uuid: Mapped[int]
    user_name: Mapped[str]
    role_uid: Mapped[str]
    trace_id: Mapped[str]
    prev_hash: Mapped[bytes]
    event_hash: Mapped[bytes]
