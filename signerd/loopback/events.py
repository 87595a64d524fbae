"""The feed as server-sent events, resumable by number; the number of streams is bounded (L11)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from signerd.errors import TooManyStreams
from signerd.feed import Feed

# A program needs one or two; each costs a connection and a waiting task.
MAX_STREAMS = 100
# So that a reader notices a dead daemon within half a minute.
HEARTBEAT_SECONDS = 15.0
# So that one app cannot take the streams of the others or of the person.
MAX_STREAMS_OF_AN_APP = 8
MEDIA_TYPE = "text/event-stream"
Gone = Callable[[], Coroutine[Any, Any, None]]
GiveBack = Callable[[], None]


@dataclass
class Streams:
    """The open streams of one server. ``close`` ends them all, so that a shutdown waits for no reader."""

    most: int = MAX_STREAMS
    most_of_an_app: int = MAX_STREAMS_OF_AN_APP
    heartbeat: float = HEARTBEAT_SECONDS
    open: int = 0
    _of: Counter[str] = field(default_factory=Counter)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        self._closing.set()

    def admit(self, app_id: str | None = None) -> GiveBack:
        """Take a place before anything is sent, so that concurrent requests cannot exceed the limit.

        ``app_id``: None for the person. Returns the function that releases the place, to be called once.
        Raises TooManyStreams.
        """
        if app_id is not None and self._of[app_id] >= self.most_of_an_app:
            raise TooManyStreams(f"this app has {self.most_of_an_app} event streams open already")
        if self.open >= self.most:
            raise TooManyStreams(f"{self.most} event streams are open already")
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
        """Every line after ``after``, then each new one, until the reader or the daemon ends the stream.

        ``gone`` returns once the reader's access has ended (L13). ``hides``: true for a subject that the
        reader may not see.
        """
        # A number above the feed's last is from before a restart: the whole feed is new then.
        position = after if after <= feed.last else 0
        ends = [
            asyncio.ensure_future(wait)
            for wait in (self._closing.wait(), *(() if gone is None else (gone(),)))
        ]
        news = None
        try:
            while not any(end.done() for end in ends):
                news = asyncio.create_task(feed.wait(position, subject, self.heartbeat))
                await asyncio.wait({news, *ends}, return_when=asyncio.FIRST_COMPLETED)
                if not news.done():
                    return
                lines = news.result()
                visible = [line for line in lines if not hides(line.subject)]
                for line in visible:
                    yield f"id: {line.number}\nevent: happened\ndata: {line.model_dump_json()}\n\n"
                position = lines[-1].number if lines else position
                # Also where every line is hidden: a silent stream looks like a dead daemon.
                if not visible:
                    yield ": still here\n\n"
        finally:
            for task in (*ends, *(() if news is None else (news,))):
                task.cancel()

    def _count(self, app_id: str | None, by: int) -> None:
        self.open += by
        if app_id is not None:
            self._of[app_id] += by
            # Drops apps with no stream.
            self._of = +self._of


class EventStreamResponse(StreamingResponse):
    """A stream that releases its place however it ends, also where the reader left before the first line."""

    def __init__(self, lines: AsyncIterator[str], give_back: GiveBack) -> None:
        super().__init__(lines, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})
        self._give_back = give_back

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._give_back()
