"""What happens, line by line, for whoever watches: what the device shows, what needs the person, what went wrong.

Kept in memory only: decisions stand in the audit chain.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

# A watcher that is further behind has lost interest; the audit chain has what matters.
LINES_KEPT = 1_000


@dataclass(frozen=True)
class Line:
    """``subject``: a proposal, a vault, or "registration". ``kind``: ask, progress, info, attention, alarm, state."""

    number: int
    subject: str
    kind: str
    text: str


class Feed:
    """One loop uses it. ``before``: the number before its first line.

    A daemon gives the time of its start, in milliseconds: whoever read a former feed of it finds all of this one to be news.
    """

    def __init__(self, before: int = 0) -> None:
        self._lines: deque[Line] = deque(maxlen=LINES_KEPT)
        self._last = before
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def last(self) -> int:
        return self._last

    def add(self, subject: str, kind: str, text: str) -> None:
        self._last += 1
        self._lines.append(Line(self._last, subject, kind, text))
        task = asyncio.get_running_loop().create_task(self._wake())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def since(self, number: int, subject: str | None = None) -> tuple[Line, ...]:
        return tuple(line for line in self._lines if line.number > number and subject in (None, line.subject))

    async def wait(self, number: int, subject: str | None, seconds: float) -> tuple[Line, ...]:
        """The lines after ``number``, as soon as there are any, or none when the time is up."""
        try:
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(lambda: bool(self.since(number, subject)))
        except TimeoutError:
            return ()
        return self.since(number, subject)

    async def _wake(self) -> None:
        async with self._news:
            self._news.notify_all()
