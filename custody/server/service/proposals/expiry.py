"""Ending proposals that waited too long for their signatures."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.lifecycle import Event
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.sweeping import sweep
from custody.server.service.lifecycle import Lifecycle
from custody.server.service.system import PLATFORM, place_of
from custody.server.store import Store
from custody.server.store.models import Proposal


class Expiry:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle

    def run_due(self) -> int:
        """Expires what is due, frees its coins, and returns how many."""
        due = (
            select(Proposal)
            .where(Proposal.status == Status.PENDING.value, Proposal.expires_at <= self._clock())
            .order_by(Proposal.expires_at)
        )
        return sweep(self._store, due, self._expire)

    def _expire(self, db: Session, proposal: Proposal) -> None:
        self._lifecycle.apply(db, proposal, Event.EXPIRE)
        self._audit.record(
            db,
            PLATFORM,
            Category.PROPOSALS,
            "PROPOSAL_EXPIRED",
            f"proposal {proposal.id}",
            access=place_of(db, proposal.workspace_id),
        )
