"""Ending what waited too long: proposals for their signatures, and others' sweeps in the same turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import select

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.lifecycle import Event
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.proposals.transitions import Lifecycle
from custody.server.service.system import PLATFORM, place_of
from custody.server.store import Store
from custody.server.store.models import Proposal

# One transaction stays short however many are due.
BATCH = 100


class Sweep(Protocol):
    """Ends what waited too long."""

    def run_due(self) -> int:
        """Ends what is due, and returns how many."""
        ...


@dataclass(frozen=True)
class Sweeps:
    """Several, one after the other."""

    parts: Sequence[Sweep]

    def run_due(self) -> int:
        return sum(part.run_due() for part in self.parts)


class Expiry:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle

    def run_due(self) -> int:
        """Expires what is due, frees its coins, and returns how many."""
        count = 0
        while done := self._run_batch():
            count += done
        return count

    def _run_batch(self) -> int:
        due = (
            select(Proposal)
            .where(Proposal.status == Status.PENDING.value, Proposal.expires_at <= self._clock())
            .order_by(Proposal.expires_at)
            .limit(BATCH)
        )
        with self._store.read() as db:
            if db.scalars(due).first() is None:
                return 0
        with self._store.write() as db:
            expired = list(db.scalars(due.with_for_update(skip_locked=True)))
            for proposal in expired:
                self._lifecycle.apply(db, proposal, Event.EXPIRE)
                self._audit.record(
                    db,
                    PLATFORM,
                    Category.PROPOSALS,
                    "PROPOSAL_EXPIRED",
                    f"proposal {proposal.id}",
                    access=place_of(db, proposal.workspace_id),
                )
            return len(expired)
