"""Changes of state, handed to everyone who listens; whoever stops listening is forgotten."""

import asyncio
import weakref
from collections.abc import AsyncIterator
from typing import Final

from firmware_bridge.model import DeviceEvent

# A listener this far behind is not reading; it loses the oldest events, not the newest.
_MAX_WAITING: Final = 1024


class EventStream(AsyncIterator[DeviceEvent]):
    """Every event from the moment the stream was made, until the bridge closes."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[DeviceEvent | None] = asyncio.Queue(_MAX_WAITING)
        self._ended = False

    def put(self, event: DeviceEvent | None) -> None:
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait(event)

    async def __anext__(self) -> DeviceEvent:
        event = None if self._ended else await self._waiting.get()
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        return event


class Hub:
    """Passes each event to every stream that somebody still holds."""

    def __init__(self) -> None:
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._closed = False

    def stream(self) -> EventStream:
        stream = EventStream()
        if self._closed:
            stream.put(None)
        self._streams.add(stream)
        return stream

    def publish(self, event: DeviceEvent) -> None:
        for stream in tuple(self._streams):
            stream.put(event)

    def close(self) -> None:
        self._closed = True
        for stream in tuple(self._streams):
            stream.put(None)
