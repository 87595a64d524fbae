"""What an operator asks first, read from the database alone: also where no server runs, or one that does not answer."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from custody.server.domain.audit import PLATFORM_CHAIN
from custody.server.service.audit.checkpoints import SIGNED
from custody.server.service.operations.figures import Figures, read_figures
from custody.server.store import Store
from custody.server.store.models import AuditEvent, Lease

_SIZES: Final = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}


@dataclass(frozen=True)
class DatabaseStatus:
    kind: str
    size_bytes: int


@dataclass(frozen=True)
class LeaseStatus:
    """Work that one process at a time has taken on; ``held``: whether one has it now."""

    name: str
    held: bool
    until: datetime


@dataclass(frozen=True)
class Status:
    """``checkpoint_at``: when the audit log was last signed, as its own record says; None where it never was."""

    database: DatabaseStatus
    figures: Figures
    leases: tuple[LeaseStatus, ...]
    checkpoint_at: datetime | None


def read_status(store: Store, now: datetime) -> Status:
    with store.read() as db:
        return Status(_database(db), read_figures(db, now), _leases(db, now), _checkpoint_at(db))


def _database(db: Session) -> DatabaseStatus:
    kind = db.get_bind().dialect.name
    return DatabaseStatus(kind, int(db.scalar(text(_SIZES[kind])) or 0))


def _leases(db: Session, now: datetime) -> tuple[LeaseStatus, ...]:
    leases = db.scalars(select(Lease).order_by(Lease.name))
    return tuple(LeaseStatus(lease.name, lease.until > now, lease.until) for lease in leases)


def _checkpoint_at(db: Session) -> datetime | None:
    signed = select(AuditEvent.timestamp).where(
        AuditEvent.chain_id == PLATFORM_CHAIN, AuditEvent.action == SIGNED
    )
    return db.scalars(signed.order_by(AuditEvent.position.desc()).limit(1)).first()
