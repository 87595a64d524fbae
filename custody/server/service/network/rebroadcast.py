"""Offering again what is on its way, now and then: nodes forget, restart, and never heard of it (P37)."""

from datetime import datetime, timedelta

from sqlalchemy import select

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.jobs.outbox import enqueue
from custody.server.service.jobs.sweeping import BATCH
from custody.server.service.proposals.finalising import BROADCAST
from custody.server.store import Store
from custody.server.store.models import Proposal

# Core's wallet offers its own again every 12 to 36 hours, for privacy. Ours are known to be ours by whoever pays us, and a
# payment that a node lost should not wait for the next block.
LEAST = timedelta(minutes=10)
# Not all of several platforms at one moment, nor at one that can be foretold.
JITTER_SECONDS = 600


class Rebroadcast:
    """Beside each block, when the watcher offers what is not in the mempool: here everything that is not confirmed."""

    def __init__(self, store: Store, clock: Clock, random: RandomBytes) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._next = self._after(clock())

    def run_due(self) -> int:
        now = self._clock()
        if now < self._next:
            return 0
        self._next = self._after(now)
        with self._store.read() as db:
            waiting = select(Proposal.id).where(
                Proposal.status == Status.BROADCASTING.value, Proposal.final_tx.is_not(None)
            )
            ids = list(db.scalars(waiting.order_by(Proposal.id)))
        for start in range(0, len(ids), BATCH):
            with self._store.write() as db:
                for proposal_id in ids[start : start + BATCH]:
                    enqueue(db, BROADCAST, proposal_id, now)
        return len(ids)

    def _after(self, moment: datetime) -> datetime:
        jitter = int.from_bytes(self._random(4)) % JITTER_SECONDS
        return moment + LEAST + timedelta(seconds=jitter)
