"""The shell for programs that await. All that is said is in ``calls``."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from signerd.client import events
from signerd.client.address import DaemonAddress, timeout
from signerd.client.api import Api
from signerd.client.events import Resumption
from signerd.client.flow import AwaitingShell, Plan, Reply, Send, Wait, refusal
from signerd.endpoint import QUICK_SECONDS
from signerd.errors import SignerdError
from signerd.shapes import Happened

R = TypeVar("R")


class AsyncDaemonClient(Api, AwaitingShell):
    """One connection pool to one daemon. Use as an async context manager. Otherwise as ``DaemonClient``."""

    def __init__(
        self, at: Path | DaemonAddress, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Raises DaemonNotRunning, UnsafeFolder: nothing is sent to a socket that somebody else could have made."""
        self.address = at if isinstance(at, DaemonAddress) else DaemonAddress.of_folder(at)
        self._sleep = sleep
        self._http = _connection(self.address, QUICK_SECONDS)

    @classmethod
    def at(cls, url: str, token: str | None = None) -> Self:
        """Over TCP. Without a token only ``pair`` is answered. Raises InvalidRequest for a URL of another machine."""
        return cls(DaemonAddress.of_address(url, token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def run(self, plan: Plan[R]) -> R:
        """Drive a plan to its answer."""
        reply: Reply | None = None
        while True:
            try:
                step = plan.send(reply)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the plan's type
            match step:
                case Send():
                    reply = await self._perform(step)
                case Wait(seconds):
                    reply = None
                    await self._sleep(seconds)

    async def _perform(self, send: Send) -> Reply:
        with self.address.translated():
            answer = await self._http.request(
                send.verb,
                self.address.base + send.path,
                params=dict(send.query),
                json=send.body,
                timeout=timeout(send.seconds),
            )
        return Reply(answer.status_code, answer.content)

    def follow(self, *, after: int | None = None, subject: str | None = None) -> "AsyncFollowing":
        """What happens after the position ``after`` (None: from now on). Use the answer as an async context manager."""
        return AsyncFollowing(self.address, events.asked(after, subject))

    async def changes(
        self, subject: str, *, patience: float = events.PATIENCE_SECONDS
    ) -> AsyncIterator[None]:
        """When to look how ``subject`` stands, for ever: as ``DaemonClient.changes``."""
        async with contextlib.aclosing(self._heard(subject, Resumption(None, patience))) as heard:
            async for _line in heard:
                yield None

    async def events(
        self,
        *,
        after: int | None = None,
        subject: str | None = None,
        patience: float = events.PATIENCE_SECONDS,
    ) -> AsyncIterator[Happened]:
        """What happens, for ever: a stream that breaks off is taken up where it was.

        Raises, as the daemon answers; DaemonNotRunning or DaemonFailed where it was away for ``patience`` seconds.
        """
        async with contextlib.aclosing(self._heard(subject, Resumption(after, patience))) as heard:
            async for line in heard:
                if line is not None:
                    yield line

    async def _heard(self, subject: str | None, place: Resumption) -> AsyncGenerator[Happened | None, None]:
        """Each line, and None where a stream begins."""
        while True:
            trouble: SignerdError | None = None
            try:
                async with AsyncFollowing(
                    self.address, events.asked(None, subject), place.headers()
                ) as lines:
                    yield None
                    async for line in lines:
                        place.hear(line)
                        if line is not None:
                            yield line
            except events.BROKEN as error:
                trouble = error
            await self._sleep(place.pause(trouble))


class AsyncFollowing:
    """An open stream on a connection of its own. Yields, ends and raises as ``Following``; leave it to stop it."""

    def __init__(
        self, address: DaemonAddress, query: Mapping[str, str | int], headers: Mapping[str, str] | None = None
    ) -> None:
        self._address = address
        self._query = dict(query)
        self._headers = dict(headers or {})
        self._exit = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        http = await self._exit.enter_async_context(_connection(self._address, events.SILENCE_SECONDS))
        async with self._exit:
            with self._address.translated():
                url = self._address.base + events.PATH
                stream = http.stream("GET", url, params=self._query, headers=self._headers)
                self._answer = await self._exit.enter_async_context(stream)
                if self._answer.is_error:
                    await self._answer.aread()
                    raise refusal(Reply(self._answer.status_code, self._answer.content))
            self._exit = self._exit.pop_all()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._exit.aclose()

    async def __aiter__(self) -> AsyncIterator[Happened | None]:
        with self._address.translated():
            async for line in self._answer.aiter_lines():
                if events.is_news(line):
                    yield events.heard(line)


def _connection(address: DaemonAddress, seconds: float) -> httpx.AsyncClient:
    # As the waiting shell has it: to the daemon or nowhere.
    transport = httpx.AsyncHTTPTransport(uds=None if address.socket is None else str(address.socket))
    return httpx.AsyncClient(
        transport=transport, timeout=timeout(seconds), headers=dict(address.headers), trust_env=False
    )
