"""Backoff before a retry, and rate limits. The clock and the jitter are passed in."""

from collections.abc import Callable
from dataclasses import dataclass


def no_jitter() -> float:
    """The whole pause, every time: for a caller that is the only one."""
    return 1.0


@dataclass
class Backoff:
    """``jitter`` gives 0 to 1. A pause is between half and all of first × 2ⁿ seconds, at most ``longest``."""

    jitter: Callable[[], float]
    first: float = 1.0
    longest: float = 60.0
    _failures: int = 0

    def next(self) -> float:
        # 2**32 is beyond any cap, and the exponent must not grow for ever.
        ceiling = min(self.longest, self.first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return ceiling * (0.5 + self.jitter() / 2)

    def reset(self) -> None:
        self._failures = 0


@dataclass
class Bucket:
    """A token bucket of ``size`` tokens, refilled with ``per_second``. ``at``: when it was last filled, in
    seconds. ``level`` is below 0 after a request that cost more than there was.
    """

    size: float
    per_second: float
    at: float
    level: float

    def fill(self, now: float) -> "Bucket":
        """A clock that was set back neither fills nor empties it."""
        self.level = min(self.size, self.level + max(0.0, now - self.at) * self.per_second)
        self.at = now
        return self

    def seconds_until(self, tokens: float) -> float:
        """0 where there are that many already."""
        return max(0.0, tokens - self.level) / self.per_second
