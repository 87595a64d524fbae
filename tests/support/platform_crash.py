"""The platform's crash harness: a process is killed at its n-th step.

A step is a statement to the database, the moment before or after a COMMIT, or the moment before or after a
call of the chain backend. The killed process is a forked child that ends by SIGKILL:
no ``finally`` runs and nothing is flushed.
"""

import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from custody.server.chain.backend import ChainBackend
from custody.server.jobs.leases import Lease
from custody.server.store import store as store_module
from custody.server.store.store import committed
from tests.support.custody import Desk
from tests.support.forked import in_child
from tests.support.prepared import Prepared, reopen

# Statements without an effect: a kill there is a kill before the next one.
IDLE = ("BEGIN", "SELECT", "PRAGMA", "SHOW", "SET")
# Methods of the chain: those called many times between two steps, and those with an effect.
TRIVIAL = frozenset({"block_at", "tip"})
TELLING = frozenset({"broadcast"})
# A process starts after the leases of a killed one have lapsed.
MINUTES_BETWEEN_PROCESSES = 10
# Rounds of a worker, at most, until nothing is left to do.
MOST_ROUNDS = 20


class Steps:
    """Counts the steps of one process, and kills it at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self._fatal = fatal
        self._armed = False
        self.count = 0

    def __call__(self) -> None:
        if not self._armed:
            return
        self.count += 1
        if self.count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """Counts from here on: setup, such as signing in, is not part of the story."""
        self._armed = True

    def disarm(self) -> None:
        self._armed = False

    def watch_database(self) -> None:
        """Counts the statements and commits of every engine of this process."""

        changed: WeakSet[Connection] = WeakSet()

        def statement(connection: Connection, _cursor: Any, text: str, *_rest: Any) -> None:
            if not text.lstrip().upper().startswith(IDLE):
                changed.add(connection)
                self()

        def commit(connection: Connection) -> None:
            if connection in changed:
                self()

        event.listen(Engine, "before_cursor_execute", statement)
        event.listen(Engine, "commit", commit)
        store_module.committed = self._committed

    def _committed(self, db: Session) -> None:
        """The commit is durable, and the caller has no answer yet."""
        self()
        committed(db)


class SteppedChain:
    """A backend whose calls are steps: before each call, and also after a call with an effect."""

    def __init__(self, inner: ChainBackend, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def ask(*args: Any, **kwargs: Any) -> Any:
            if name not in TRIVIAL:
                self._steps()
            answer = found(*args, **kwargs)
            if name in TELLING:
                self._steps()
            return answer

        return ask


# One process: a server answers a request, or a worker works until there is nothing to do. Another process
# plays it again after a kill, as a signer's program resends its signature: what is done is left as it is.
Turn = Callable[[Desk, Steps], None]


@dataclass
class Life:
    """Processes one after another over one database and one chain."""

    prepared: Prepared
    state: Path
    url: str
    processes: int = 0

    def play(self, turn: Turn, fatal: int | None = None) -> int | None:
        """The number of its steps, or None where it was killed."""
        self.processes += 1

        def run() -> None:
            steps = Steps(fatal)
            steps.watch_database()
            with reopen(self.prepared, self.state, self.url) as desk:
                desk.later(minutes=MINUTES_BETWEEN_PROCESSES * self.processes)
                backends: dict[str, Any] = desk.world.platform.background.backends
                backends["regtest"] = SteppedChain(desk.chain, steps)
                turn(desk, steps)
                steps.disarm()
            (self.state / "steps").write_text(str(steps.count))

        if in_child(run) == signal.SIGKILL:
            return None
        return int((self.state / "steps").read_text())


def work(desk: Desk, steps: Steps) -> None:
    """Runs a worker's rounds until nothing changes any more. The lease for following the chain is taken,
    renewed and released step by step.
    """
    background = desk.world.platform.background
    lead = Lease(
        background.store, background.tools.clock, secrets.token_bytes, f"watcher of {desk.watcher.chain}"
    )
    steps.arm()
    for _ in range(MOST_ROUNDS):
        with lead.work() as held:
            assert held is not None, "the killed one's lease has lapsed"
            lead.renew()
            is_news = desk.watcher.look(held)
        if not (desk.outbox.run_due() | is_news):
            break
    lead.release()
    steps.disarm()
