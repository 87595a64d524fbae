"""Moving a proposal along its table, with what each step brings with it."""

from sqlalchemy import delete
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import ENDED, Event, next_status
from custody.server.domain.ports import Clock
from custody.server.service.requests.changes import Changes
from custody.server.service.webhooks.events import WebhookEvents
from custody.server.service.webhooks.telling import tell_status
from custody.server.store.models import CoinLock, Proposal


class Lifecycle:
    def __init__(self, clock: Clock, changes: Changes, events: WebhookEvents) -> None:
        self._clock = clock
        self._changes = changes
        self._events = events

    def apply(self, db: Session, proposal: Proposal, event: Event) -> Status:
        """The proposal's new status; its coins are free where it has ended. Raises IllegalTransition."""
        before = Status(proposal.status)
        status = next_status(before, event)
        proposal.status = status.value
        self.touch(db, proposal)
        if status is not before:
            tell_status(self._events, db, proposal)
        if status in ENDED:
            db.execute(delete(CoinLock).where(CoinLock.family_id == proposal.family_id))
        return status

    def touch(self, db: Session, proposal: Proposal) -> None:
        """Something about it changed that readers wait for."""
        proposal.updated_at = self._clock()
        db.flush()
        self._changes.moved(db, proposal.workspace_id)
