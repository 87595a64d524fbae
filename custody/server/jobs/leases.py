"""Leases for work that only one process does at a time: following a chain, sweeping.

A lease is a row with its holder's token; every take-over writes a new token. A transaction that finds its own
token in the row, under the database's write lock, knows that no other process has held the lease since: a
process that slept past its lease writes nothing (a fencing token). The time in the row only says when others
may take over; a wrong clock costs time, and never leads to two holders.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.server.rules.credentials import new_id
from custody.server.rules.defaults import LEASE
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.store import Store
from custody.server.store.models.bookkeeping import LeaseRow

# A process that holds on for longer than this is stuck, even if its heartbeat goes on.
MAX_HOLD: Final = timedelta(minutes=30)


class LeaseLost(Exception):
    """Another process has taken over: nothing was written, and this process must not write its results."""


@dataclass(frozen=True)
class Held:
    """A lease that this process holds. ``token`` is new each time it is taken."""

    name: str
    token: str

    def require(self, db: Session) -> None:
        """Call it in the transaction that writes. Raises LeaseLost."""
        owner = db.scalar(select(LeaseRow.owner).where(LeaseRow.name == self.name))
        if owner != self.token:
            raise LeaseLost(self.name)


def has_lapsed(until: datetime, now: datetime, span: timedelta) -> bool:
    """Whether the lease is over. True also where ``until`` is later than any lease ends: then the holder's
    clock was wrong.
    """
    return not now < until <= now + 2 * span


@dataclass(eq=False)
class Lease:
    """One lease, as this process takes and renews it. Thread-safe: one thread works, another renews."""

    store: Store
    clock: Clock
    random: RandomBytes
    name: str
    span: timedelta = LEASE
    _held: Held | None = None
    _until: datetime | None = None
    _working_since: datetime | None = None

    @contextmanager
    def work(self) -> Iterator[Held | None]:
        """Yields the lease, which `renew` keeps for the length of the block; None where another process
        has it.
        """
        held = self._take()
        self._working_since = None if held is None else self.clock()
        try:
            yield held
        except LeaseLost:
            self._held = None
            raise
        finally:
            self._working_since = None

    def renew(self) -> None:
        """Called from another thread during the work. It does not take a lost lease again."""
        held, since, now = self._held, self._working_since, self.clock()
        if held is None or since is None or now > since + MAX_HOLD or not self._is_due(now):
            return
        with self.store.write() as db:
            lease = db.get(LeaseRow, self.name)
            if lease is not None and lease.owner == held.token:
                lease.until = self._until = now + self.span

    def release(self) -> None:
        """Gives the lease back, so that other processes need not wait until it lapses."""
        held, self._held = self._held, None
        if held is not None:
            with self.store.write() as db:
                db.execute(delete(LeaseRow).where(LeaseRow.name == held.name, LeaseRow.owner == held.token))

    def _take(self) -> Held | None:
        now = self.clock()
        if self._held is not None and not self._is_due(now):
            return self._held
        # A snapshot first, so that a process that stands by does not wait for the write lock.
        with self.store.read() as db:
            if not self._is_free(db, now):
                self._held = None
                return None
        with self.store.write() as db:
            if not self._is_free(db, now):
                self._held = None
                return None
            lease, held = db.get(LeaseRow, self.name), self._held
            if lease is None or held is None or lease.owner != held.token:
                held = Held(self.name, new_id(self.random))
            until = now + self.span
            db.merge(LeaseRow(name=self.name, owner=held.token, until=until))
            self._held, self._until = held, until
            return held

    def _is_free(self, db: Session, now: datetime) -> bool:
        lease = db.get(LeaseRow, self.name)
        if lease is None or (self._held is not None and lease.owner == self._held.token):
            return True
        return has_lapsed(lease.until, now, self.span)

    def _is_due(self, now: datetime) -> bool:
        """Whether a third of the lease is over, or the clock was set back."""
        until = self._until
        return until is None or not now < until - self.span * 2 / 3 <= now + self.span
