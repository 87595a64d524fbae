"""How often something may be tried: sliding windows, in the database for all processes, in memory for each."""

import threading
from collections import OrderedDict, deque
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.server.domain.errors import RateLimited
from custody.server.domain.ports import Clock
from custody.server.store import Store
from custody.server.store.models import Attempt

# Keys come from outside: the oldest are forgotten, so that nobody fills the memory with names.
MAX_KEYS = 10_000
# No window is longer: what is older counts for none and is deleted in passing.
LONGEST_WINDOW = timedelta(hours=1)
# RFC 6177: a site gets at least a /64, so that its addresses are one caller's to choose from.
IPV6_SITE_BITS = 64


class AttemptLimit:
    """At most ``limit`` counted tries of one subject within ``window``, whichever process counts them.

    The table holds hashes: a list of the addresses that somebody tried is nobody's business.
    """

    def __init__(self, store: Store, clock: Clock, kind: str, *, limit: int, window: timedelta) -> None:
        assert window <= LONGEST_WINDOW, "older tries are deleted"
        self._store = store
        self._clock = clock
        self._kind = kind
        self._limit = limit
        self._window = window

    def take(self, subject: str) -> None:
        """Counts a try before its outcome is known. Raises RateLimited, with the seconds until the next one."""
        with self._store.write() as db:
            self.take_in(db, subject)

    def take_in(self, db: Session, subject: str) -> None:
        """The same in the caller's transaction, which a refusal undoes."""
        now = self._clock()
        db.execute(delete(Attempt).where(Attempt.tried_at <= now - LONGEST_WINDOW))
        tries = db.scalars(
            select(Attempt.tried_at)
            .where(
                Attempt.kind == self._kind,
                Attempt.subject_hash == _hash(subject),
                Attempt.tried_at > now - self._window,
            )
            .order_by(Attempt.tried_at)
        ).all()
        if len(tries) >= self._limit:
            raise _too_many(tries[-self._limit], self._window, now)
        db.add(Attempt(kind=self._kind, subject_hash=_hash(subject), tried_at=now))

    def forget(self, db: Session, subject: str) -> None:
        """Forgives the tries of a subject: one of them was right."""
        db.execute(delete(Attempt).where(Attempt.kind == self._kind, Attempt.subject_hash == _hash(subject)))


class Throttle:
    """At most ``limit`` counted tries of one key within ``window``. One per process: each worker allows as many."""

    def __init__(self, clock: Clock, *, limit: int, window: timedelta) -> None:
        self._clock = clock
        self._limit = limit
        self._window = window
        self._tries: OrderedDict[str, deque[datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str) -> None:
        """Counts a try. Raises RateLimited, with the seconds until the next one, where the key has used up its own.

        Counted before the outcome is known, so that tries at the same time are not all the first one.
        """
        with self._lock:
            now = self._clock()
            tries = self._recent(key, now)
            if len(tries) >= self._limit:
                raise _too_many(tries[0], self._window, now)
            tries.append(now)
            self._tries[key] = tries
            self._tries.move_to_end(key)
            while len(self._tries) > MAX_KEYS:
                self._tries.popitem(last=False)

    def _recent(self, key: str, now: datetime) -> deque[datetime]:
        tries = self._tries.get(key) or deque(maxlen=self._limit)
        horizon = now - self._window
        while tries and tries[0] <= horizon:
            tries.popleft()
        return tries


def caller_at(address: str) -> str:
    """Who counts as one caller: an IPv4 address, mapped into IPv6 or not, and all of an IPv6 /64."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found), IPV6_SITE_BITS), strict=False))


def _hash(subject: str) -> bytes:
    return sha256(subject.encode()).digest()


def _too_many(oldest: datetime, window: timedelta, now: datetime) -> RateLimited:
    wait = oldest + window - now
    return RateLimited("Too many attempts.", retry_after=max(1, ceil(wait.total_seconds())))
