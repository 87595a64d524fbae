"""Timing on noisy machines: the best of several runs, each long enough for the clock."""

import time
from collections.abc import Awaitable, Callable, Mapping

ROUNDS = 5
LEAST_SECONDS = 0.05


def best_ms(work: Callable[[], object]) -> float:
    """Milliseconds of one call in the best of several rounds of ``LEAST_SECONDS``."""
    best = float("inf")
    for _ in range(ROUNDS):
        calls, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < LEAST_SECONDS or not calls:
            work()
            calls += 1
        best = min(best, elapsed / calls)
    return best * 1000


async def rivals_ms(works: Mapping[str, Callable[[], Awaitable[object]]], rounds: int) -> dict[str, float]:
    """Milliseconds of one call of each, the best of several rounds in turns under the same noise."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            started = time.perf_counter()
            await work()
            best[name] = min(best[name], (time.perf_counter() - started) * 1000)
    return best
