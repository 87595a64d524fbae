"""How often an app may take a device's screen: one thing at a time, and a few in a minute (L6).

A person who is asked again and again says yes in the end. The person's own commands are not bounded.
"""

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator

from signerd.callers import Caller
from signerd.errors import TooManyPrompts

# A person compares an address in ten seconds or more: who asks oftener does not want it compared.
MOST_A_MINUTE = 6
_WINDOW_SECONDS = 60.0


class Prompts:
    """One loop uses it. What it remembers is bounded by the number of paired apps."""

    def __init__(self, clock: Callable[[], float], most: int = MOST_A_MINUTE) -> None:
        self._clock = clock
        self._most = most
        self._open: set[str] = set()
        self._taken: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=self._most))

    @contextlib.contextmanager
    def turn(self, caller: Caller) -> Iterator[None]:
        """Around what asks a device for this caller. Raises TooManyPrompts: the device was not asked."""
        if caller.app_id is None:
            yield
            return
        self._admit(caller.app_id)
        self._open.add(caller.app_id)
        try:
            yield
        finally:
            self._open.discard(caller.app_id)

    def _admit(self, app_id: str) -> None:
        if app_id in self._open:
            raise TooManyPrompts("a device is asked for this app already")
        taken, now = self._taken[app_id], self._clock()
        if len(taken) == self._most and now - taken[0] < _WINDOW_SECONDS:
            raise TooManyPrompts(f"an app may ask devices {self._most} times a minute")
        taken.append(now)
