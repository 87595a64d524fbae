"""The feed as server-sent events, with resume by number (L11: a bounded number of streams)."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from signerd.core.text import plain
from signerd.errors import TooManyStreams
from signerd.feed import Feed, Line
from signerd.shapes import Happened

# A program of one person needs one or two; each costs a connection and a waiting task.
MAX_STREAMS = 100
# Often enough for a reader to tell silence from a dead daemon within half a minute.
HEARTBEAT_SECONDS = 15.0
# So that one app leaves room for the others, and for the person.
MAX_STREAMS_OF_AN_APP = 8
MEDIA_TYPE = "text/event-stream"
Gone = Callable[[], Coroutine[Any, Any, None]]
GiveBack = Callable[[], None]


@dataclass
class Streams:
    """The open streams of one server. ``close`` ends them all, so that a shutdown need not wait
    for readers.
    """

    most: int = MAX_STREAMS
    most_of_an_app: int = MAX_STREAMS_OF_AN_APP
    heartbeat: float = HEARTBEAT_SECONDS
    _open: int = 0
    _of: Counter[str] = field(default_factory=Counter)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def open(self) -> int:
        return self._open

    def close(self) -> None:
        self._closing.set()

    def admit(self, app_id: str | None = None) -> GiveBack:
        """Take a place, before anything of the stream is sent: of many that ask at once only so many get one.

        ``app_id``: None for the person. Returns what gives the place back, to be called once. Raises
        TooManyStreams.
        """
        if app_id is not None and self._of[app_id] >= self.most_of_an_app:
            raise TooManyStreams(f"this app follows the events {self.most_of_an_app} times already")
        if self._open >= self.most:
            raise TooManyStreams(f"{self.most} programs follow the events already")
        self._count(app_id, 1)
        return partial(self._count, app_id, -1)

    async def follow(
        self,
        feed: Feed,
        after: int,
        subject: str | None,
        gone: Gone | None = None,
        hides: Callable[[str], bool] = lambda _subject: False,
    ) -> AsyncIterator[str]:
        """Every line after ``after``, and then each as it comes, until the reader or the daemon goes.

        ``gone`` returns when the reader may be told nothing any more (L13). ``hides``: of which subjects it
        is told nothing.
        """
        # A number from before a restart of the daemon is ahead of its feed: everything is news then.
        position = after if after <= feed.last else 0
        with self._over(gone) as over:
            while not over.is_set():
                lines = await self._next(feed, position, subject, over)
                told = [line for line in lines if not hides(line.subject)]
                for line in told:
                    yield _event(line)
                position = lines[-1].number if lines else position
                # Also where all of it is hidden: a reader that hears nothing takes the daemon for dead.
                if not told and not over.is_set():
                    yield ": still here\n\n"

    def _count(self, app_id: str | None, by: int) -> None:
        self._open += by
        if app_id is not None:
            self._of[app_id] += by
            # Those with none are not kept: apps come and go.
            self._of = +self._of

    @contextlib.contextmanager
    def _over(self, gone: Gone | None) -> Iterator[asyncio.Event]:
        """What is set when the stream must end."""
        over = asyncio.Event()
        waits = [self._closing.wait(), *(() if gone is None else (gone(),))]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        for task in tasks:
            task.add_done_callback(lambda _task: over.set())
        try:
            yield over
        finally:
            for task in tasks:
                task.cancel()

    async def _next(
        self, feed: Feed, position: int, subject: str | None, over: asyncio.Event
    ) -> tuple[Line, ...]:
        news = asyncio.create_task(feed.wait(position, subject, self.heartbeat))
        ending = asyncio.create_task(over.wait())
        try:
            await asyncio.wait({news, ending}, return_when=asyncio.FIRST_COMPLETED)
            return news.result() if news.done() else ()
        finally:
            news.cancel()
            ending.cancel()


class Following(StreamingResponse):
    """A stream with its place, which it gives back however it ends: also where its reader was gone before the
    first line.
    """

    def __init__(self, lines: AsyncIterator[str], give_back: GiveBack) -> None:
        super().__init__(lines, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})
        self._give_back = give_back

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._give_back()


def happened(line: Line) -> Happened:
    return Happened(number=line.number, subject=line.subject, kind=line.kind, text=plain(line.text))


def _event(line: Line) -> str:
    return f"id: {line.number}\nevent: happened\ndata: {happened(line).model_dump_json()}\n\n"
