"""Moving a proposal along its table, with what each step brings with it."""

from sqlalchemy import delete
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import ENDED, Event, next_status
from custody.server.domain.ports import Clock
from custody.server.service.requests.changes import Changes
from custody.server.store.models import CoinLock, Proposal


class Lifecycle:
    def __init__(self, clock: Clock, changes: Changes) -> None:
        self._clock = clock
        self._changes = changes

    def apply(self, db: Session, proposal: Proposal, event: Event) -> Status:
        """The proposal's new status; its coins are free where it has ended. Raises IllegalTransition."""
        status = next_status(Status(proposal.status), event)
        proposal.status = status.value
        self.touch(db, proposal)
        if status in ENDED:
            db.execute(delete(CoinLock).where(CoinLock.family_id == proposal.family_id))
        return status

    def touch(self, db: Session, proposal: Proposal) -> None:
        """Something about it changed that readers wait for."""
        proposal.updated_at = self._clock()
        db.flush()
        self._changes.after_commit(db)
