"""How long a request holds the loop: its own steps are timed, and what it waits for is not."""

import asyncio
import math
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

from custody.pace import Bucket
from signerd.errors import TooManyRequests


@dataclass
class Metered:
    """Awaits ``what`` in the task that awaits this; tasks of its own that it begins are not timed.

    ``clock``: seconds. ``spent``: those in which nobody else was served, also where it failed. Raises as ``what`` does.
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
class _App:
    bucket: Bucket
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


@dataclass
class Rates:
    """By the caller's id: those of the paired apps, of which there are few."""

    clock: Callable[[], float]
    per_second: float = PER_SECOND
    burst: float = BURST
    _apps: dict[str, _App] = field(default_factory=dict)

    def take(self, who: str) -> None:
        """Raises TooManyRequests, with the whole seconds after which there is one again."""
        self._require(who, 1)
        self._of(who).bucket.level -= 1

    async def in_turn(self, who: str, request: Request) -> None:
        """Answer a request for which ``take`` took a token, after those of the same app that came before it.

        What it cost beyond its token is taken afterwards; so however many came at once, they cost what an app may. Raises
        TooManyRequests where those before it have used up what there was.
        """
        async with self._of(who).turns:
            self._require(who, 0)
            metered = Metered(request(), self.clock)
            try:
                await metered
            finally:
                self._charge(who, metered.spent / TOKEN_SECONDS - 1)

    def _require(self, who: str, tokens: float) -> None:
        """Raises TooManyRequests."""
        if wait := self._of(who).bucket.seconds_until(tokens):
            raise TooManyRequests("this app asks too often, or for too much", seconds=math.ceil(wait))

    def _charge(self, who: str, tokens: float) -> None:
        bucket = self._of(who).bucket
        bucket.level = max(-DEEPEST, bucket.level - max(0.0, tokens))

    def _of(self, who: str) -> _App:
        now = self.clock()
        if who not in self._apps:
            self._apps[who] = _App(Bucket.full(self.burst, self.per_second, now))
        app = self._apps[who]
        app.bucket.fill(now)
        return app
