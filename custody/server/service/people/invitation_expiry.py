"""Writing down that invitations were not answered in time. They count as expired from the moment itself."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.invitations import InvitationStatus as Status
from custody.server.domain.invitations import Event, next_status
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.tidying import sweep
from custody.server.service.people.invitation_records import record_event
from custody.server.service.system import PLATFORM, place_of
from custody.server.store import Store
from custody.server.store.models import Invitation


class InvitationExpiry:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit

    def run_due(self) -> int:
        """Marks what is due, and returns how many."""
        due = (
            select(Invitation)
            .where(Invitation.status == Status.PENDING.value, Invitation.expires_at <= self._clock())
            .order_by(Invitation.expires_at)
        )
        return sweep(self._store, due, lambda db, invitation: expire(db, self._audit, invitation))


def expire(db: Session, audit: AuditLog, invitation: Invitation) -> None:
    """Marks one whose time has passed, in the caller's transaction."""
    invitation.status = next_status(Status(invitation.status), Event.EXPIRE).value
    invitation.decided_at = invitation.expires_at
    db.flush()
    place = place_of(db, invitation.workspace_id)
    record_event(db, audit, PLATFORM, place, "INVITATION_EXPIRED", invitation)
