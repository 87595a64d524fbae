"""What happens, line by line; what is out of order at the moment; tasks that are restarted when they fail;
and one call for all who ask at once.

The lines are for a person or program that watches: what the device shows, what needs the person, what went
wrong. They are kept in memory only: decisions are in the audit chain. A supervised task whose code fails is
reported and started again after a growing pause, and its failure ends nothing else.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from custody.common.pace import Backoff
from custody.common.text import plain
from signerd.errors import SignerdError
from signerd.runtime import DaemonDependencies
from signerd.shapes.account import Happened

# A watcher that is further behind has lost interest; the audit chain has what matters.
LINES_KEPT = 1_000
# As many alarms are kept beside them: no other line pushes one out unread (L6).
ALARM = "alarm"
ALARMS_KEPT = 100
# Of kind "ask": what is behind it is what the device will not show.
WAITS = "This proposal waits for your decision."


class Feed:
    """Not thread-safe: for one event loop. ``before``: the number before its first line. ``last``: of its
    newest one.

    A daemon gives the time of its start, in milliseconds: for a reader of a former feed, all of this one is
    new.
    """

    def __init__(self, before: int = 0) -> None:
        self._lines: deque[Happened] = deque(maxlen=LINES_KEPT)
        self._alarms: deque[Happened] = deque(maxlen=ALARMS_KEPT)
        self.last = before
        # Set, and another one put in its place, at each line.
        self._news = asyncio.Event()

    def add(self, subject: str, kind: str, text: str) -> None:
        """``text``: may be a device's or the platform's, and is cleaned here (L8)."""
        self.last += 1
        line = Happened(number=self.last, subject=subject, kind=kind, text=plain(text))
        self._lines.append(line)
        if kind == ALARM:
            self._alarms.append(line)
        self._news.set()
        self._news = asyncio.Event()

    def since(self, number: int, subject: str | None = None) -> tuple[Happened, ...]:
        return tuple(
            line for line in self._kept() if line.number > number and subject in (None, line.subject)
        )

    def _kept(self) -> Iterator[Happened]:
        """In their order: alarms that the other lines have pushed out, and all that were not."""
        oldest = self._lines[0].number if self._lines else 0
        yield from (line for line in self._alarms if line.number < oldest)
        yield from self._lines

    async def wait(self, number: int, subject: str | None, seconds: float) -> tuple[Happened, ...]:
        """The lines after ``number``, as soon as there are any, or none when the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while not (lines := self.since(number, subject)):
                    await self._news.wait()
                return lines
        except TimeoutError:
            return ()


# A platform may send any number of bad entries: a person reads so many of a group, and how many more there
# are.
MOST_TOLD = 5


class Troubles:
    """By group: each look at something reports all that is wrong with it, and nothing once it is well."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._standing: dict[str, dict[str, str]] = {}

    def report(self, group: str, sentences: Mapping[str, str]) -> None:
        """``sentences``: by what it is about, in a sentence. What is known already is not told again."""
        known = self._standing.pop(group, {})
        fresh = [
            (subject, sentence) for subject, sentence in sentences.items() if known.get(subject) != sentence
        ]
        for subject, sentence in fresh[:MOST_TOLD]:
            self._feed.add(subject, "attention", sentence)
        if len(fresh) > MOST_TOLD:
            self._feed.add(group, "attention", _more(len(fresh) - MOST_TOLD))
        if sentences:
            self._standing[group] = dict(sentences)

    def sentences(self) -> tuple[str, ...]:
        return tuple(line for group in self._standing.values() for line in _shown(tuple(group.values())))


def _shown(sentences: tuple[str, ...]) -> tuple[str, ...]:
    more = len(sentences) - MOST_TOLD
    return sentences if more <= 0 else (*sentences[:MOST_TOLD], _more(more))


def _more(count: int) -> str:
    return f"And {count} more of this kind."


E = TypeVar("E")
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
# Still going after this long, it is taken to be well.
STEADY_SECONDS = 10.0

_log = logging.getLogger(__name__)


async def supervise(
    subject: str,
    what: str,
    run: Callable[[], Awaitable[None]],
    troubles: Troubles,
    outside: DaemonDependencies,
) -> None:
    """Until it returns by itself. ``what`` begins the sentence about a failure: "Looking for devices".

    Our own errors are raised on: a journal that cannot be written ends everything.
    """
    pause = Backoff(outside.jitter)

    async def well_after_a_while() -> None:
        await outside.sleep(STEADY_SECONDS)
        pause.reset()
        troubles.report(what, {})

    while True:
        well = asyncio.create_task(well_after_a_while())
        try:
            await run()
        except SignerdError:
            raise
        except Exception:  # noqa: BLE001 - the border to code that is not ours: whatever it raises, the daemon goes on
            _log.exception("%s failed in an unforeseen way", what)
            troubles.report(what, {subject: unforeseen(what)})
        else:
            troubles.report(what, {})
            return
        finally:
            well.cancel()
        await outside.sleep(pause.next())


# Judging or listing a thousand entries takes seconds: other tasks run after this long (L11).
AT_ONCE_SECONDS = 0.02


async def in_turn(take: Callable[[E], T], entries: Iterable[E]) -> list[T]:
    """``take`` of each entry; other tasks run in between, and none after the last."""
    items, began = [], time.monotonic()
    for entry in entries:
        if time.monotonic() - began >= AT_ONCE_SECONDS:
            await asyncio.sleep(0)
            began = time.monotonic()
        items.append(take(entry))
    return items


def unforeseen(what: str) -> str:
    return f"{what} failed unexpectedly, and is tried again: signerd's own messages say how."


class SingleFlight(Generic[T]):
    """Shares one call between concurrent callers. Used by one event loop.

    A caller never gets a result whose computation began before it asked.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._turn = asyncio.Lock()
        self._begun = 0
        # The number of the last call, and its result.
        self._last: tuple[int, T] | None = None

    async def get(self) -> T:
        """Raises what ``make`` raises."""
        begun = self._begun
        async with self._turn:
            if self._last is None or self._last[0] <= begun:
                self._begun += 1
                self._last = (self._begun, await self._make())
            return self._last[1]
