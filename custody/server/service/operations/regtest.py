"""What an operator asks of a running server from the command line, through the outbox: mining and funding on
the embedded chain.

Only users who can write the platform's own database can do this.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, select

from custody.server.domain.credentials import new_id
from custody.server.domain.errors import ChainUnavailable, Invalid
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.jobs.outbox import Dead, Done, Finish, Task, Verdict, enqueue
from custody.server.store import Store
from custody.server.store.models import Job
from multisig import InvalidAmount, MultisigError, Sats, parse_btc

if TYPE_CHECKING:
    # The command's side goes without the consensus engine.
    from custody.server.chain.embedded import EmbeddedChain

MINE = "regtest-mine"
FUND = "regtest-fund"
POLL_SECONDS = 0.05
# Paying much may mine a thousand blocks first, which takes seconds, and many times that on a busy machine.
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class OperatorTasks:
    """The server's side: handlers for the embedded chain's jobs."""

    chain: "EmbeddedChain"

    def mine(self, task: Task) -> Finish:
        return self._attempt(lambda: self._mine(int(task.payload["count"])))

    def fund(self, task: Task) -> Finish:
        address, amount = str(task.payload["address"]), Sats(int(task.payload["amount_sats"]))
        return self._attempt(lambda: {"txid": self.chain.fund(address, amount)})

    def _mine(self, count: int) -> dict[str, Any]:
        last = self.chain.mine(count)[-1]
        return {"height": last.height, "block_hash": last.hash}

    @staticmethod
    def _attempt(act: Callable[[], dict[str, Any]]) -> Finish:
        """Done once and never repeated: an operator who sees a failure decides what to do."""
        verdict: Verdict
        try:
            verdict = Done(act())
        except (ValueError, MultisigError, ChainUnavailable) as error:
            verdict = Dead(str(error))
        return lambda _db: verdict


class Operator:
    """The command's side: asks, and waits for the answer."""

    def __init__(self, store: Store, clock: Clock, random: RandomBytes) -> None:
        self._store = store
        self._clock = clock
        self._random = random

    def mine(self, count: int, *, timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """The new tip. Raises ChainUnavailable where no server answers, Invalid where it cannot be done."""
        return self._ask(MINE, {"count": count}, timeout)

    def fund(self, address: str, amount_btc: str, *, timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """The payment's txid; it waits for the next block. Raises as `mine`."""
        try:
            amount = parse_btc(amount_btc)
        except InvalidAmount as error:
            raise Invalid(str(error)) from error
        return self._ask(FUND, {"address": address, "amount_sats": amount}, timeout)

    def _ask(self, kind: str, payload: dict[str, Any], timeout: float) -> dict[str, Any]:
        subject = new_id(self._random)
        with self._store.write() as db:
            enqueue(db, kind, subject, self._clock(), payload)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            answer = self._answer(kind, subject)
            if answer is not None:
                return answer
            time.sleep(POLL_SECONDS)
        self._withdraw(kind, subject)
        raise ChainUnavailable("No server with an embedded chain is running on this state folder.")

    def _answer(self, kind: str, subject: str) -> dict[str, Any] | None:
        with self._store.read() as db:
            job = db.scalars(_job(kind, subject)).one()
            if job.dead_at is not None:
                raise Invalid(job.last_error or "The request failed.")
            return None if job.done_at is None else dict(job.payload["result"])

    def _withdraw(self, kind: str, subject: str) -> None:
        """A server that starts later must not do what the command no longer waits for."""
        with self._store.write() as db:
            job = db.scalars(_job(kind, subject)).one()
            if job.done_at is None:
                job.dead_at, job.last_error = self._clock(), "no answer came in time"


def _job(kind: str, subject: str) -> Select[Job]:
    return select(Job).where(Job.kind == kind, Job.subject == subject)
