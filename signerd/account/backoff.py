"""How long to wait before the next try: longer each time, and never in step with others (jitter from outside)."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Backoff:
    """``jitter`` gives 0 to 1. The pause is between half and all of first × 2ⁿ seconds, at most ``longest``."""

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
