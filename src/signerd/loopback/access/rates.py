"""How often an app may ask: a bucket of tokens for each, refilled by the second (L6, L11)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from signerd.errors import TooManyRequests

# A program that shows what happens asks a few times for each event; twenty a second is none that a person waits for.
PER_SECOND = 20.0
# A program that starts asks for everything once.
BURST = 60.0


@dataclass
class _Bucket:
    left: float
    at: float


@dataclass
class Rates:
    """By the caller's id: those of the paired apps, of which there are few."""

    clock: Callable[[], float]
    per_second: float = PER_SECOND
    burst: float = BURST
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def take(self, who: str) -> None:
        """Raises TooManyRequests, with the whole seconds after which there is one again."""
        now = self.clock()
        bucket = self._buckets.setdefault(who, _Bucket(self.burst, now))
        bucket.left = min(self.burst, bucket.left + (now - bucket.at) * self.per_second)
        bucket.at = now
        if bucket.left < 1:
            seconds = math.ceil((1 - bucket.left) / self.per_second)
            raise TooManyRequests(f"more than {self.per_second:.0f} requests a second", seconds=seconds)
        bucket.left -= 1
