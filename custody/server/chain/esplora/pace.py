"""How often and how much the explorer is asked, and how long no request is sent after a failure."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from custody.pace import Backoff, no_jitter
from custody.server.domain.errors import ChainUnavailable

# Doubled at each failure in a row, up to the longest.
LONGEST_PAUSE = 300.0
# What an explorer may ask for in Retry-After: an hour is what public ones say at most.
LONGEST_RETRY_AFTER = 3_600.0
# In units of the first peace.
PEACE_AFTER_A_LIE = 30.0


@dataclass(frozen=True)
class Pace:
    """Seconds for which an answer is good enough, and the load that the platform makes.

    electrs lets its volatile answers be cached for ten seconds (TTL_SHORT in rest.rs): asking more often
    tells nothing. A script's mempool is asked again after `scripts_seconds`, or later where so many are
    watched that all of them would be more than `requests_per_second`; a new block makes all be asked at once.
    """

    tip_seconds: float = 5.0
    scripts_seconds: float = 30.0
    fees_seconds: float = 60.0
    requests_per_second: float = 20.0
    parallel: int = 4
    first_peace: float = 1.0

    def scripts_period(self, scripts: int) -> float:
        """How long the answers about that many scripts are good enough while no block comes."""
        return self.scripts_seconds and max(self.scripts_seconds, scripts / self.requests_per_second)


class Peace:
    """After a failure nothing is sent for a while: a watcher looks twice a second, and must not hammer."""

    def __init__(self, clock: Callable[[], float], first: float) -> None:
        self._clock = clock
        self._pause = Backoff(no_jitter, first, LONGEST_PAUSE)
        self._lock = threading.Lock()
        self._until = -math.inf

    def require_peace_over(self) -> None:
        """Raises ChainUnavailable during the pause after a failure."""
        with self._lock:
            left = math.ceil(self._until - self._clock()) if self._until > self._clock() else 0
        if left:
            raise ChainUnavailable(
                f"The explorer failed, or asked for peace: it is asked again in {left} s.", retry_after=left
            )

    def failed(self, retry_after: float = 0.0) -> None:
        """Leave it in peace: as long as it asks for, or longer at each failure in a row."""
        with self._lock:
            # Questions that were under way together fail together, and count once.
            first = self._clock() >= self._until
            own = self._pause.next() if first else 0.0
            self._until = max(self._until, self._clock() + max(own, min(retry_after, LONGEST_RETRY_AFTER)))

    def lied(self) -> None:
        """Called for contradictory answers: asking again at once would give the same."""
        with self._lock:
            if self._clock() >= self._until:
                self._until = self._clock() + PEACE_AFTER_A_LIE * self._pause.first

    def worked(self) -> None:
        with self._lock:
            self._pause.reset()


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Memory(Generic[Key, Value]):
    """At most `limit` values; safe in several threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Key, value: Value) -> Value:
        """Remembers and returns it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value
