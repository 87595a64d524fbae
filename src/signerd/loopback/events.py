"""The feed as server-sent events, with resume by number (L11: a bounded number of streams)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from signerd.core.text import plain
from signerd.errors import TooManyStreams
from signerd.feed import Feed, Line
from signerd.loopback.shapes import Happened

# A program of one person needs one or two; each costs a connection and a waiting task.
MAX_STREAMS = 100
# Often enough for a reader to tell silence from a dead daemon within half a minute.
HEARTBEAT_SECONDS = 15.0
MEDIA_TYPE = "text/event-stream"


@dataclass
class Streams:
    """The open streams of one server. ``close`` ends them all, so that a shutdown need not wait for readers."""

    most: int = MAX_STREAMS
    heartbeat: float = HEARTBEAT_SECONDS
    _open: int = 0
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        self._closing.set()

    def admit(self) -> None:
        """Raises TooManyStreams."""
        if self._open >= self.most:
            raise TooManyStreams(f"{self.most} programs follow the events already")

    async def follow(self, feed: Feed, after: int, subject: str | None) -> AsyncIterator[str]:
        """Every line after ``after``, and then each as it comes, until the reader or the daemon goes."""
        # A number from before a restart of the daemon is ahead of its feed: everything is news then.
        position = after if after <= feed.last else 0
        self._open += 1
        try:
            while not self._closing.is_set():
                lines = await self._next(feed, position, subject)
                for line in lines:
                    yield _event(line)
                    position = line.number
                if not lines and not self._closing.is_set():
                    yield ": still here\n\n"
        finally:
            self._open -= 1

    async def _next(self, feed: Feed, position: int, subject: str | None) -> tuple[Line, ...]:
        news = asyncio.create_task(feed.wait(position, subject, self.heartbeat))
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait({news, closing}, return_when=asyncio.FIRST_COMPLETED)
            return news.result() if news.done() else ()
        finally:
            news.cancel()
            closing.cancel()


def happened(line: Line) -> Happened:
    return Happened(number=line.number, subject=line.subject, kind=line.kind, text=plain(line.text))


def _event(line: Line) -> str:
    return f"id: {line.number}\nevent: happened\ndata: {happened(line).model_dump_json()}\n\n"
