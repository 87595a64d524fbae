"""Timing on noisy machines: the best of several runs, each long enough for the clock."""

import time
from collections.abc import Callable


def best_ms(work: Callable[[], object], *, rounds: int = 5, least_seconds: float = 0.05) -> float:
    """Milliseconds of one call: the best round of several, each repeated until it lasted ``least_seconds``."""
    best = float("inf")
    for _ in range(rounds):
        calls, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < least_seconds or not calls:
            work()
            calls += 1
        best = min(best, elapsed / calls)
    return best * 1000
