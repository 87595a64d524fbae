"""How much of its workers' time a process gives to one workspace's receivers, so that no tenant takes what is the others' (P51).

A receiver may take ten seconds for each answer, on purpose too, and whoever may make webhooks may ask for tests and deliveries
again and again. In memory: each process has workers of its own.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# So much at once: a burst of some thousand deliveries to receivers that answer soon, or six that hang.
BURST_SECONDS: Final = 60.0
# And so much from then on: one of the hands that a process has by default, of four.
SECONDS_A_SECOND: Final = 1.0
# However soon it was answered: two transactions, for the lease and for the record, are behind each attempt.
LEAST_SECONDS: Final = 0.05
# Whoever has to wait does so for a moment at least: each look costs a transaction.
SHORTEST_WAIT: Final = 1.0
# Those that are full again are forgotten when there are so many.
MAX_WORKSPACES: Final = 1_000


@dataclass
class _Share:
    left: float
    at: float


class Shares:
    """A bucket of seconds for each workspace, which fills as they pass. What is under way counts when it ends."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._shares: dict[int, _Share] = {}
        self._lock = threading.Lock()

    def wait(self, workspace_id: int) -> float:
        """In how many seconds there is something left for it; 0 where there is now."""
        with self._lock:
            share = self._shares.get(workspace_id)
            if share is None or (left := self._left(share)) > 0:
                return 0.0
            return max(SHORTEST_WAIT, -left / SECONDS_A_SECOND)

    def spend(self, workspace_id: int, seconds: float) -> None:
        with self._lock:
            now = self._timer()
            share = self._shares.get(workspace_id)
            left = BURST_SECONDS if share is None else self._left(share)
            self._shares[workspace_id] = _Share(left - max(LEAST_SECONDS, seconds), now)
            if len(self._shares) > MAX_WORKSPACES:
                self._shares = {
                    key: each for key, each in self._shares.items() if self._left(each) < BURST_SECONDS
                }

    def _left(self, share: _Share) -> float:
        return min(BURST_SECONDS, share.left + (self._timer() - share.at) * SECONDS_A_SECOND)
