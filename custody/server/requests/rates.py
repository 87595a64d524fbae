"""Rate limits: calls, changes and long polls of a user, and attempts to sign in by account or address."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from custody.common.pace import Bucket
from custody.schemas.call import Call
from custody.server.errors import RateLimited
from custody.server.rules.credentials import plain_address
from custody.server.rules.defaults import CALLS_PER_MINUTE, WRITES_PER_MINUTE
from custody.server.rules.ports import Clock
from custody.server.store.models import AttemptRow

# A search reads some thousand proposals: it counts as so many calls more.
SEARCH_CALLS = 9
# For a user who has used up the others: to sign out, and to freeze a vault.
RESERVED_PER_MINUTE = 30
# A long poll costs a connection and some memory. A daemon has one, a page one for each workspace that it
# shows.
MAX_LONG_POLLS = 16
# Each has one of the process's 800 connections. The rest is for other calls, and for other tenants' polls,
# however many people one tenant invites.
MAX_LONG_POLLS_OF_A_WORKSPACE = 400
MAX_LONG_POLLS_IN_ALL = 600
# By then one of the user's long polls has ended.
LONG_POLL_RETRY_SECONDS = 5
EXPORT_RETRY_SECONDS = 2
# Each look at whether anything is left may cost a transaction.
SHORTEST_WAIT = 1.0
# Keys come from callers: beyond this the least recent is dropped, and starts again with a full bucket.
MAX_KEYS = 10_000
# No window is longer: older attempts are deleted.
LONGEST_WINDOW = timedelta(hours=1)
# RFC 6177: a site gets at least a /64, so one caller can choose among all its addresses.
IPV6_SITE_BITS = 64


class Throttle:
    """A token bucket of ``limit`` for each key, full again within ``window``; in each process's memory."""

    def __init__(self, clock: Clock, *, limit: int, window: timedelta = timedelta(minutes=1)) -> None:
        self._clock = clock
        self._limit = limit
        self._per_second = limit / window.total_seconds()
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: Hashable, count: int = 1) -> None:
        """Raises RateLimited, with the seconds until there are so many again. An attempt is counted before
        its outcome is known, so that simultaneous ones do not each count as the first.
        """
        with self._lock:
            bucket = self._filled(key)
            if wait := bucket.seconds_until(min(count, self._limit)):
                raise RateLimited("You are asking too often.", retry_after=max(1, ceil(wait)))
            bucket.level -= count

    def spend(self, key: Hashable, count: float) -> None:
        """Takes what is known afterwards alone, even more than there is."""
        with self._lock:
            self._filled(key).level -= count

    def wait(self, key: Hashable) -> float:
        """The seconds until anything is left; 0 where it is."""
        with self._lock:
            bucket = self._filled(key)
            return 0.0 if bucket.level > 0 else max(SHORTEST_WAIT, bucket.seconds_until(0))

    def give_back(self, key: Hashable) -> None:
        """For an attempt that does not count after all: the key's bucket is full again."""
        with self._lock:
            self._buckets.pop(key, None)

    def _filled(self, key: Hashable) -> Bucket:
        now = self._clock().timestamp()
        bucket = self._buckets.setdefault(key, Bucket(self._limit, self._per_second, now, self._limit))
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        return bucket.fill(now)


class UnderWay:
    """Counts what is being done now, by key; in each process's memory."""

    def __init__(self) -> None:
        self.counts: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def one(self, key: Hashable, most: int, refusal: Exception) -> Iterator[None]:
        """Held while it is done. Raises ``refusal`` where ``most`` with this key are under way."""
        with self._lock:
            if self.counts[key] >= most:
                raise refusal
            self.counts[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self.counts[key] -= 1
                if not self.counts[key]:
                    del self.counts[key]


class Rates:
    def __init__(
        self, clock: Clock, *, calls: int = CALLS_PER_MINUTE, writes: int = WRITES_PER_MINUTE
    ) -> None:
        self.calls = Throttle(clock, limit=calls)
        # Changes, and reading calls that write too: a refusal or an export is recorded.
        self.writes = Throttle(clock, limit=writes)
        # Calls that have calls of their own.
        self.reserved = Throttle(clock, limit=RESERVED_PER_MINUTE)
        self._polling = UnderWay()
        # By workspace; under None all of them.
        self._polled = UnderWay()
        self._exporting = UnderWay()

    def take_call(self, user_id: int, call: Call[Any, Any]) -> None:
        """Counts one call of a signed-in user; of those that have calls of their own, apart. Raises
        RateLimited.
        """
        if call.reserved:
            self.reserved.take(user_id)
            return
        self.calls.take(user_id)
        if call.is_change:
            self.writes.take(user_id)

    @contextmanager
    def export(self, user_id: int) -> Iterator[None]:
        """Held while a user's export is made, which takes a core for a second or two. One at a time. Raises
        RateLimited.
        """
        self.writes.take(user_id)
        refusal = RateLimited("An export of yours is being made.", retry_after=EXPORT_RETRY_SECONDS)
        with self._exporting.one(user_id, 1, refusal):
            yield

    @contextmanager
    def long_poll(self, user_id: int, workspace_id: int) -> Iterator[None]:
        """Held while a call waits. Raises RateLimited."""
        of_user = _too_many(f"You are waiting {MAX_LONG_POLLS} times already.")
        of_workspace = _too_many("Too many are waiting for this workspace.")
        with (
            self._polling.one(user_id, MAX_LONG_POLLS, of_user),
            self._polled.one(workspace_id, MAX_LONG_POLLS_OF_A_WORKSPACE, of_workspace),
            self._polled.one(None, MAX_LONG_POLLS_IN_ALL, _too_many("Too many are waiting.")),
        ):
            yield


def _too_many(sentence: str) -> RateLimited:
    return RateLimited(sentence, retry_after=LONG_POLL_RETRY_SECONDS)


@dataclass(frozen=True)
class AttemptLimit:
    """At most ``limit`` attempts of one subject within ``window``, in all processes together. The table has
    hashes, not the addresses that were tried.
    """

    kind: str
    limit: int
    window: timedelta

    def __post_init__(self) -> None:
        assert self.window <= LONGEST_WINDOW, "older tries are deleted"

    def take(self, db: Session, subject: str, now: datetime) -> None:
        """Counts a try, in a transaction that commits before the outcome is known.

        Raises RateLimited, with the seconds until the next one.
        """
        db.execute(delete(AttemptRow).where(AttemptRow.tried_at <= now - LONGEST_WINDOW))
        of, sentence = self._of(subject), "Too many attempts."
        require_few(db, AttemptRow.tried_at, of, self.limit, self.window, now, sentence)
        db.add(AttemptRow(kind=self.kind, subject_hash=_hash(subject), tried_at=now))

    def forget(self, db: Session, subject: str) -> None:
        """Deletes the tries of a subject after a successful one."""
        db.execute(delete(AttemptRow).where(*self._of(subject)))

    def _of(self, subject: str) -> tuple[ColumnElement[bool], ...]:
        return AttemptRow.kind == self.kind, AttemptRow.subject_hash == _hash(subject)


def require_few(
    db: Session,
    at: InstrumentedAttribute[datetime],
    of: Sequence[ColumnElement[bool]],
    limit: int,
    window: timedelta,
    now: datetime,
    sentence: str,
) -> None:
    """At most ``limit`` rows within ``window``, of those that are kept anyway. Raises RateLimited."""
    count, oldest = db.execute(select(func.count(), func.min(at)).where(*of, at > now - window)).one()
    if count >= limit:
        raise RateLimited(sentence, retry_after=ceil((oldest + window - now).total_seconds()))


def caller_at(address: str) -> str:
    """The key of one caller: an IPv4 address, also IPv4-mapped, or a whole IPv6 /64."""
    try:
        ip = ip_address(plain_address(address))
    except ValueError:
        return address
    is_v6 = isinstance(ip, IPv6Address)
    return str(IPv6Network((int(ip), IPV6_SITE_BITS), strict=False) if is_v6 else ip)


def _hash(subject: str) -> bytes:
    return sha256(subject.encode()).digest()
