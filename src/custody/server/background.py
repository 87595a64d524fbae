"""What runs beside the requests while a server runs: the embedded chain, and the workers that follow it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from custody.server.chain.backend import ChainBackend
from custody.server.chain.embedded import EmbeddedChain
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.tokens import new_id
from custody.server.service.audit.checkpoints import Checkpoints
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.operator import FUND, MINE, OperatorTasks
from custody.server.service.jobs.outbox import Handler, Outbox
from custody.server.service.jobs.sweeping import Sweep, Sweeps
from custody.server.service.jobs.tidying import Tidying
from custody.server.service.jobs.workers import Workers
from custody.server.service.mail.jobs import MAIL, MailJobs
from custody.server.service.network.broadcast import Broadcaster
from custody.server.service.network.market import Market
from custody.server.service.network.sightings import Sightings
from custody.server.service.network.watcher import Watcher
from custody.server.service.people.invitation_expiry import InvitationExpiry
from custody.server.service.proposals.expiry import Expiry
from custody.server.service.proposals.finalising import BROADCAST
from custody.server.service.proposals.transitions import Lifecycle
from custody.server.service.requests.changes import Changes
from custody.server.store import Store


@dataclass(frozen=True)
class Background:
    """``backends`` is filled when the server starts: administration does not open the chain, which has one owner."""

    store: Store
    clock: Clock
    random: RandomBytes
    audit: AuditLog
    checkpoints: Checkpoints
    changes: Changes
    lifecycle: Lifecycle
    market: Market
    backends: dict[str, ChainBackend]
    chain_folder: Path
    mail_jobs: MailJobs

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncIterator[None]:
        """Raises ChainUnavailable where the embedded chain is open in another program."""
        chain = await run_in_threadpool(self.open_chain)
        workers = self.workers()
        workers.start()
        try:
            yield
        finally:
            await run_in_threadpool(workers.stop)
            await run_in_threadpool(chain.close)

    def open_chain(self) -> EmbeddedChain:
        """The regtest chain of this process, known as a backend from now on."""
        chain = EmbeddedChain(self.chain_folder, clock=lambda: self.clock().timestamp())
        self.backends[chain.network.value] = chain
        return chain

    def workers(self) -> Workers:
        return Workers(self.outbox(), self.mail_outbox(), self.watchers(), self.expiry(), self.changes)

    def mail_outbox(self) -> Outbox:
        """A worker of its own for mail: a mail server that hangs must not keep a transaction from the network."""
        return Outbox(self.store, self.clock, new_id(self.random), {MAIL: self.mail_jobs})

    def outbox(self) -> Outbox:
        """A worker for every other kind of job that this process can do."""
        broadcaster = Broadcaster(self.store, self.backends, self.audit, self.lifecycle)
        handlers: dict[str, Handler] = {BROADCAST: broadcaster}
        for backend in self.backends.values():
            if isinstance(backend, EmbeddedChain):
                tasks = OperatorTasks(backend)
                handlers |= {MINE: tasks.mine, FUND: tasks.fund}
        return Outbox(self.store, self.clock, new_id(self.random), handlers)

    def watchers(self) -> list[Watcher]:
        sightings = Sightings(self.clock, self.audit, self.lifecycle)
        return [
            Watcher(chain, self.store, self.backends, self.market, sightings, self.changes, self.clock)
            for chain in self.backends
        ]

    def expiry(self) -> Sweep:
        proposals = Expiry(self.store, self.clock, self.audit, self.lifecycle)
        invitations = InvitationExpiry(self.store, self.clock, self.audit)
        return Sweeps((proposals, invitations, self.checkpoints, Tidying(self.store, self.clock)))
