"""How often something may be tried: a sliding window in memory, for each key."""

import threading
from collections import OrderedDict, deque
from datetime import datetime, timedelta
from math import ceil

from custody.server.domain.errors import RateLimited
from custody.server.domain.ports import Clock

# Keys come from outside: the oldest are forgotten, so that nobody fills the memory with names.
MAX_KEYS = 10_000


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
                wait = tries[0] + self._window - now
                raise RateLimited("Too many attempts.", retry_after=max(1, ceil(wait.total_seconds())))
            tries.append(now)
            self._tries[key] = tries
            self._tries.move_to_end(key)
            while len(self._tries) > MAX_KEYS:
                self._tries.popitem(last=False)

    def clear(self, key: str) -> None:
        """Forgives the tries of a key: one of them was right."""
        with self._lock:
            self._tries.pop(key, None)

    def _recent(self, key: str, now: datetime) -> deque[datetime]:
        tries = self._tries.get(key) or deque(maxlen=self._limit)
        horizon = now - self._window
        while tries and tries[0] <= horizon:
            tries.popleft()
        return tries
