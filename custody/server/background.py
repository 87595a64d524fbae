"""What runs in a process beside the requests: connections to the chains, and the workers."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from custody.server.audit.checkpoints import Checkpoints
from custody.server.chain.backend import ChainBackend
from custody.server.chain.configuration import ChainSource, OpenBackend, open_backend
from custody.server.chain.embedded import EmbeddedChain
from custody.server.jobs.leases import Held, Lease
from custody.server.jobs.outbox import BROADCAST, COMPLETION, Handler, Outbox
from custody.server.jobs.tidying import OVER, Sweep, Tidying, sweep_all
from custody.server.jobs.workers import Loop, Workers, alone, serve_outbox, surviving
from custody.server.mail.jobs import MAIL, WAITING, MailJobs, forget_sent
from custody.server.mail.waiting import WaitingMail, remind_of_checks
from custody.server.mining import mining_served
from custody.server.network.broadcast import Broadcaster, Rebroadcast
from custody.server.network.watcher import Watcher
from custody.server.operations.status import ENDLESS
from custody.server.people.invitations import invitation_expiry
from custody.server.proposals.completing import Completion
from custody.server.proposals.ending import proposal_expiries
from custody.server.proposals.screening import screening_deadlines
from custody.server.rules.credentials import new_id
from custody.server.second_person.changes import change_expiry
from custody.server.services import Tools
from custody.server.settings import Settings
from custody.server.store import Store
from custody.server.tokens.indexer import Indexer
from custody.server.webhooks.delivery import EXPIRED_LOGS, WebhookJobs
from custody.server.webhooks.events import QUESTION, WEBHOOK

# A block comes every ten minutes, an embedded one on request; half a second feels immediate to a person.
WATCH_SECONDS: Final = 0.5
# A proposal expires at its time, however late this job records it.
SWEEP_SECONDS: Final = 1.0
# Rates and heights for new transactions, in processes that do not follow the chain themselves.
MARKET_SECONDS: Final = 10.0
# Questions wait for their receivers, and take no database meanwhile: so many for each other worker.
QUESTION_THREADS: Final = 4
# A process of an older version writes nothing once the database is migrated, and ends within this time.
VERSION_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Background:
    """``sources``: the chains. With an embedded one among them this is the only process of its platform.
    ``backends`` is filled when the process starts: administration does not open the chain, which has one
    owner.

    """

    settings: Settings
    store: Store
    tools: Tools
    checkpoints: Checkpoints
    backends: dict[str, ChainBackend]
    sources: Sequence[ChainSource]
    mail_jobs: MailJobs
    webhook_jobs: WebhookJobs
    _running: list[Workers] = field(default_factory=list)
    _outdated: Event = field(default_factory=Event)

    @property
    def span(self) -> timedelta:
        """How long a lease lasts."""
        return timedelta(seconds=self.settings.lease_seconds)

    @property
    def has_embedded_chain(self) -> bool:
        return any(source.is_embedded for source in self.sources)

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncIterator[None]:
        """Raises ChainUnavailable where the embedded chain is open in another program."""
        running = self.running()
        await run_in_threadpool(running.__enter__)
        try:
            yield
        finally:
            await run_in_threadpool(running.__exit__, None, None, None)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Opens the chains and runs the threads of this process. Raises as `lifespan`."""
        self.open_chains()
        workers = self.workers()
        self._running.append(workers)
        workers.start()
        try:
            with ExitStack() as served:
                for backend in self.backends.values():
                    if isinstance(backend, EmbeddedChain):
                        served.enter_context(mining_served(self.settings.chain_folder, backend))
                yield
        finally:
            workers.stop()
            self._running.remove(workers)
            self.close_chains()
            if self.settings.with_workers:
                with surviving("checkpoint"):
                    self.checkpoints.at_stop()

    def stop_taking(self) -> None:
        """Start no new work: work under way may go on until `running` ends. Callable from any thread."""
        for workers in self._running:
            workers.stop_taking()

    @property
    def is_outdated(self) -> bool:
        """Whether a newer version has migrated the database: then this process has to end."""
        return self._outdated.is_set()

    def open_chains(self) -> None:
        """Open every chain that this process reaches, into ``backends``."""
        for source in self.sources:
            self.backends[source.network.value] = open_backend(
                source, folder=self.settings.chain_folder, clock=lambda: self.tools.clock().timestamp()
            )

    def close_chains(self) -> None:
        for backend in self.backends.values():
            if isinstance(backend, OpenBackend):
                backend.close()

    def workers(self) -> Workers:
        """The threads of this process: one `Loop` for each kind of work."""
        loops = self._work() if self.settings.with_workers else []
        loops.append(Loop("market", self._ask_market, MARKET_SECONDS))
        loops.append(Loop("version", self._compare_version, VERSION_SECONDS))
        return Workers(loops, self.tools.changes)

    def _work(self) -> list[Loop]:
        loops: list[Loop] = []
        renewals: list[Callable[[], object]] = []

        def alone_here(name: str, held: str, act: Callable[[Held], object], seconds: float) -> None:
            lease = Lease(self.store, self.tools.clock, self.tools.random, held, self.span)
            renewals.append(lease.renew)
            loops.append(alone(name, lease, act, seconds))

        for source in self.sources:
            chain = self.backends.get(source.network.value)
            if isinstance(chain, EmbeddedChain) and source.block_seconds:
                loops.append(Loop("mining", chain.mine_what_waits, float(source.block_seconds)))
        for name in ("outbox", "mail", "webhooks", "questions"):
            outbox = self.outbox(name)
            renewals.append(outbox.renew)
            threads = self.settings.worker_threads * (QUESTION_THREADS if name == "questions" else 1)
            loops.append(serve_outbox(name, outbox, threads))
        followers: list[Watcher | Indexer] = [*self.watchers(), *self.indexers()]
        for follower in followers:
            name = "watcher" if isinstance(follower, Watcher) else "tokens"
            if isinstance(self.backends[follower.chain], EmbeddedChain):
                # Its own lock says that no other process follows it: a killed one's lease need not lapse.
                loops.append(Loop(name, follower.look, WATCH_SECONDS))
            else:
                alone_here(name, f"{name} of {follower.chain}", follower.look, WATCH_SECONDS)
        sweep = self.expiry()
        alone_here("sweeps", "sweeps", lambda _held: sweep(), SWEEP_SECONDS)
        loops.append(Loop("heartbeat", partial(_each, renewals), self.span.total_seconds() / 3))
        return loops

    def _compare_version(self) -> None:
        if self.store.is_outdated():
            self._outdated.set()

    def _ask_market(self) -> None:
        for chain in tuple(self.backends):
            with surviving("market"):
                self.tools.market.refresh(chain)

    def outbox(self, name: str = "outbox") -> Outbox:
        """A worker for broadcasts; ``mail``, ``webhooks`` and ``questions`` have workers of their own: a mail
        server that hangs, or a slow receiver, must not delay a broadcast.
        """
        # Each delivery of a webhook has its own rule for when to give up.
        tools, endless = self.tools, ENDLESS | {WEBHOOK, QUESTION}
        waiting = WaitingMail(self.store, tools.clock, self.mail_jobs.mailer)
        broadcaster = Broadcaster(self.store, self.backends, tools.audit, tools.lifecycle)
        handlers: dict[str, dict[str, Handler]] = {
            "outbox": {BROADCAST: broadcaster, COMPLETION: Completion(self.store, tools)},
            "mail": {MAIL: self.mail_jobs, WAITING: waiting},
            "webhooks": {WEBHOOK: self.webhook_jobs},
            "questions": {QUESTION: self.webhook_jobs},
        }
        owner = new_id(tools.random)
        return Outbox(self.store, tools.clock, owner, handlers[name], endless, self.span)

    def watchers(self) -> list[Watcher]:
        tools = self.tools
        own = self.store, self.backends, tools.market, tools.audit, tools.lifecycle
        return [Watcher(chain, *own) for chain in self.backends]

    def indexers(self) -> list[Indexer]:
        """An embedded chain is indexed from its first block; another one from the operator's setting on."""
        first = {each.network.value: 0 if each.is_embedded else each.tokens_from for each in self.sources}
        return [Indexer(chain, self.store, self.backends, first.get(chain, 0)) for chain in self.backends]

    def expiry(self) -> Sweep:
        own = self.store, self.tools.clock, self.tools.audit
        parts: tuple[Sweep, ...] = (
            *proposal_expiries(*own, self.tools.lifecycle),
            screening_deadlines(self.store, self.tools),
            Rebroadcast(self.store, self.tools.clock, self.tools.random),
            invitation_expiry(*own),
            change_expiry(*own),
            self.checkpoints.run_due,
            Tidying(self.store, self.tools.clock, (*OVER, forget_sent, remind_of_checks)),
            Tidying(self.store, self.tools.clock, EXPIRED_LOGS),
        )
        return partial(sweep_all, parts)


def _each(acts: Iterable[Callable[[], object]]) -> None:
    for act in acts:
        with surviving("heartbeat"):
            act()
