"""The cable of one conversation, as the device's end sees it: whoever waits there hears when it is cut."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

from firmware_bridge.errors import Cancelled, Disconnected
from firmware_bridge.protocol import DeviceFailure


class Line:
    """Between the thread that serves a conversation and the event loop that has the screen."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._changing = threading.Lock()
        self._cut = threading.Event()
        self._interruption: str | None = None
        self._waiting: Future[bool] | None = None

    def cut(self) -> None:
        """From any thread: the cable is pulled, or the other end is gone."""
        self._cut.set()
        self.interrupt(Disconnected.code)

    def interrupt(self, outcome: str) -> None:
        """From any thread: end what waits now, or is about to, with the outcome of this code."""
        with self._changing:
            self._interruption = outcome
            if self._waiting is not None:
                self._waiting.cancel()

    def join(self) -> None:
        """For a new operation, with a device that is there: what ended the one before is over."""
        with self._changing:
            self._cut.clear()
            self._interruption = None

    def require_whole(self) -> None:
        """:raises DeviceFailure: the operation was interrupted."""
        if self._interruption is not None:
            raise DeviceFailure(self._interruption, None)

    def say_nothing(self) -> None:
        """As a device that hangs does: until somebody ends the conversation, which the bridge does at its deadline."""
        self._cut.wait()

    @contextlib.contextmanager
    def showing(self, question: Coroutine[Any, Any, bool]) -> Iterator[Future[bool]]:
        """A question on the screen; it leaves the screen with the block."""
        answer = asyncio.run_coroutine_threadsafe(question, self._loop)
        with self._changing:
            self._waiting = answer
            if self._interruption is not None:
                answer.cancel()
        try:
            yield answer
        finally:
            with self._changing:
                self._waiting = None
            answer.cancel()

    def answer(self, waiting: "Future[bool]") -> bool:
        """:raises DeviceFailure: the operation was interrupted before anybody decided."""
        try:
            return waiting.result()
        except CancelledError:
            raise DeviceFailure(self._interruption or Cancelled.code, None) from None
