"""How long to wait before the next try, and how often a caller may ask. The clock and the jitter are passed
in.
"""

from collections.abc import Callable
from dataclasses import dataclass


def no_jitter() -> float:
    """The whole pause, every time: for a caller that has no others to keep out of step with."""
    return 1.0


@dataclass
class Backoff:
    """``jitter`` gives 0 to 1. A pause is between half and all of first × 2ⁿ seconds, at most ``longest``."""

    jitter: Callable[[], float]
    first: float = 1.0
    longest: float = 60.0
    _failures: int = 0

    def next(self) -> float:
        # 2**32 is beyond any cap: the exponent must not grow for ever.
        ceiling = min(self.longest, self.first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return ceiling * (0.5 + self.jitter() / 2)

    def reset(self) -> None:
        self._failures = 0


@dataclass
class Bucket:
    """A token bucket: ``size`` tokens at most, and ``per_second`` new ones. ``at``: when it was last filled,
    seconds.

    ``level`` is below 0 where a request cost more than there was.
    """

    size: float
    per_second: float
    at: float
    level: float

    @classmethod
    def full(cls, size: float, per_second: float, now: float) -> "Bucket":
        return cls(size, per_second, now, size)

    def fill(self, now: float) -> "Bucket":
        """A clock that was set back fills nothing, and takes nothing away."""
        self.level = min(self.size, self.level + max(0.0, now - self.at) * self.per_second)
        self.at = now
        return self

    def seconds_until(self, tokens: float) -> float:
        """Until that many are there; 0 where they are."""
        return max(0.0, tokens - self.level) / self.per_second
