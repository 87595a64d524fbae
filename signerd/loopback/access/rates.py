"""How long a request holds the loop: its own steps are timed, and what it waits for is not."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

from signerd.errors import TooManyRequests


@dataclass
class Metered:
    """Awaits ``what`` in the task that awaits this; tasks of its own that it begins are not timed.

    ``clock``: processor seconds of the loop's thread, so that an app does not pay for what other programs keep the machine
    busy with. ``spent``: what it cost, also where it failed. Raises as ``what`` does.
    """

    what: Coroutine[Any, Any, None]
    clock: Callable[[], float]
    spent: float = 0.0

    def __await__(self) -> Generator[Any, None, None]:
        """What an await does, written out (PEP 380): each yield is one return to the loop."""
        heard: BaseException | None = None
        while True:
            try:
                waits_for = self._step(heard)
            except StopIteration:
                return
            try:
                heard = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation, above all: it is for ``what`` to hear
                heard = error

    def _step(self, heard: BaseException | None) -> Any:
        began = self.clock()
        try:
            return self.what.send(None) if heard is None else self.what.throw(heard)
        finally:
            self.spent += self.clock() - began


# A program that shows what happens asks a few times for each event; twenty a second is none that a person waits for.
PER_SECOND = 20.0
# A program that starts asks for everything once.
BURST = 60.0
# Of the loop's time, that one token buys: an app has a tenth of it, and nobody waits for an app for long.
TOKEN_SECONDS = 0.005
# Whatever one request cost, the next is answered half a minute later; a machine may sleep in the middle of one.
DEEPEST = 600.0
# A second one goes on while the first waits for a device or for the platform.
AT_ONCE = 2

Request = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class _Bucket:
    """``left`` is below 0 where a request cost more than there was."""

    left: float
    at: float
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


@dataclass
class Rates:
    """By the caller's id: those of the paired apps, of which there are few. `work`: see `Metered.clock`."""

    clock: Callable[[], float]
    work: Callable[[], float] = time.thread_time
    per_second: float = PER_SECOND
    burst: float = BURST
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def take(self, who: str) -> None:
        """Raises TooManyRequests, with the whole seconds after which there is one again."""
        self._require(who, 1)
        self._filled(who).left -= 1

    async def in_turn(self, who: str, request: Request) -> None:
        """Answer a request for which ``take`` took a token, after those of the same app that came before it.

        What it cost beyond its token is taken afterwards; so however many came at once, they cost what an app may. Raises
        TooManyRequests where those before it have used up what there was.
        """
        async with self._filled(who).turns:
            self._require(who, 0)
            metered = Metered(request(), self.work)
            try:
                await metered
            finally:
                self._charge(who, metered.spent / TOKEN_SECONDS - 1)

    def _require(self, who: str, tokens: float) -> None:
        """Raises TooManyRequests."""
        bucket = self._filled(who)
        if bucket.left < tokens:
            seconds = math.ceil((tokens - bucket.left) / self.per_second)
            raise TooManyRequests("this app asks too often, or for too much", seconds=seconds)

    def _charge(self, who: str, tokens: float) -> None:
        bucket = self._filled(who)
        bucket.left = max(-DEEPEST, bucket.left - max(0.0, tokens))

    def _filled(self, who: str) -> _Bucket:
        now = self.clock()
        bucket = self._buckets.setdefault(who, _Bucket(self.burst, now))
        bucket.left = min(self.burst, bucket.left + (now - bucket.at) * self.per_second)
        bucket.at = now
        return bucket
