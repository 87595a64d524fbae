"""Moving a proposal along its table, with what each step brings with it."""

from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import ENDED, Event, next_status
from custody.server.domain.ports import Clock
from custody.server.service.proposals.families import settle_family
from custody.server.service.requests.changes import Changes
from custody.server.service.webhooks.events import WebhookEvents, tell_status
from custody.server.store.models import Proposal


class Lifecycle:
    def __init__(self, clock: Clock, changes: Changes, events: WebhookEvents) -> None:
        self._clock = clock
        self._changes = changes
        self._events = events

    def apply(self, db: Session, proposal: Proposal, event: Event) -> Status:
        """The proposal's new status; its coins are free where it has ended and no other member of its family needs them.

        Raises IllegalTransition.
        """
        before = Status(proposal.status)
        status = next_status(before, event)
        if status not in ENDED or event is Event.RELEASED:
            proposal.keeps_coins = False
        proposal.status = status.value
        self.touch(db, proposal)
        if status is not before:
            tell_status(self._events, db, proposal)
            self._changes.count(db, self._changes.meters.proposals.labels(status.value).inc)
        if (before in ENDED) is not (status in ENDED) or event is Event.RELEASED:
            settle_family(db, proposal)
        return status

    def touch(self, db: Session, proposal: Proposal) -> None:
        """Something about it changed that readers wait for."""
        proposal.updated_at = self._clock()
        self.show(db, proposal)

    def show(self, db: Session, proposal: Proposal) -> None:
        """Readers see other words, and it stands as it did."""
        db.flush()
        self._changes.moved(db, proposal.workspace_id)
