"""How much of the platform one person may take up: calls and changes a minute, and long polls at once. In memory."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from custody.pace import Bucket
from custody.server.domain.errors import RateLimited
from custody.server.domain.ports import Clock

# A reading call takes two or three milliseconds of one core: twenty a second from one person are a twentieth of it. A page
# that shows a workspace makes some twenty calls, and a daemon two or three a minute besides its long poll.
CALLS_PER_MINUTE = 1_200
# A change holds the one write lock for some ten milliseconds: five a second are a twentieth of all that can be changed.
WRITES_PER_MINUTE = 300
# A long poll costs a connection and some memory. A daemon holds one, an open page one for each workspace it shows.
MAX_LONG_POLLS = 16
# Each holds one of the process's 800 connections: some are left for whoever only asks, and for other tenants' polls, however many
# people one tenant invites.
MAX_LONG_POLLS_OF_A_WORKSPACE = 400
MAX_LONG_POLLS_IN_ALL = 600
# By then one of one's own has ended, or will be given up.
LONG_POLL_RETRY_SECONDS = 5
EXPORT_RETRY_SECONDS = 2
# As many people are remembered; who has not called for longest is forgotten, which gives them a full bucket.
MAX_PEOPLE = 10_000
_MINUTE_SECONDS = 60.0


class Buckets:
    """A bucket of ``size`` for each person, which fills within a minute (a token bucket). One per process."""

    def __init__(self, clock: Clock, size: int) -> None:
        self._clock = clock
        self._size = size
        self._buckets: OrderedDict[int, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, user_id: int) -> None:
        """Raises RateLimited, with the seconds until there is one again."""
        with self._lock:
            bucket = self._filled(user_id)
            if wait := bucket.seconds_until(1):
                raise RateLimited("You are asking too often.", retry_after=max(1, ceil(wait)))
            bucket.level -= 1

    def _filled(self, user_id: int) -> Bucket:
        now = self._clock().timestamp()
        bucket = self._buckets.setdefault(user_id, Bucket.full(self._size, self._size / _MINUTE_SECONDS, now))
        self._buckets.move_to_end(user_id)
        if len(self._buckets) > MAX_PEOPLE:
            self._buckets.popitem(last=False)
        return bucket.fill(now)


class Rates:
    def __init__(
        self, clock: Clock, *, calls: int = CALLS_PER_MINUTE, writes: int = WRITES_PER_MINUTE
    ) -> None:
        self._calls = Buckets(clock, calls)
        self._writes = Buckets(clock, writes)
        self._polling: Counter[int] = Counter()
        self._polled: Counter[int] = Counter()
        self._exporting: set[int] = set()
        self._lock = threading.Lock()

    def take(self, user_id: int, *, is_write: bool) -> None:
        """Counts one call of a signed-in person's. Raises RateLimited."""
        self._calls.take(user_id)
        if is_write:
            self._writes.take(user_id)

    def take_write(self, user_id: int) -> None:
        """For a reading call that writes all the same: a refusal or an export is recorded. Raises RateLimited."""
        self._writes.take(user_id)

    @contextmanager
    def export(self, user_id: int) -> Iterator[None]:
        """Held while somebody's export is made, which takes a core for a second or two: one at a time. Raises RateLimited."""
        self.take_write(user_id)
        with self._lock:
            if user_id in self._exporting:
                raise RateLimited("An export of yours is being made.", retry_after=EXPORT_RETRY_SECONDS)
            self._exporting.add(user_id)
        try:
            yield
        finally:
            with self._lock:
                self._exporting.discard(user_id)

    @contextmanager
    def long_poll(self, user_id: int, workspace_id: int) -> Iterator[None]:
        """Held while a call waits; on the event loop's own thread. Raises RateLimited."""
        if self._polling[user_id] >= MAX_LONG_POLLS:
            raise _too_many(f"You are waiting {MAX_LONG_POLLS} times already.")
        if self._polled[workspace_id] >= MAX_LONG_POLLS_OF_A_WORKSPACE:
            raise _too_many("Too many are waiting for this workspace.")
        if self._polled.total() >= MAX_LONG_POLLS_IN_ALL:
            raise _too_many("Too many are waiting.")
        counted = ((self._polling, user_id), (self._polled, workspace_id))
        for counter, key in counted:
            counter[key] += 1
        try:
            yield
        finally:
            for counter, key in counted:
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]


def _too_many(sentence: str) -> RateLimited:
    return RateLimited(sentence, retry_after=LONG_POLL_RETRY_SECONDS)
