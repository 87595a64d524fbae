"""The async client: the daemon's calls and events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import httpx

from custody.common.exchange import Awaiting, HttpReply
from custody.common.transports import message, no_answer, perform
from signerd.api.account import EventsApi
from signerd.asking import DaemonAddress, address_of, failure, refusal
from signerd.client.flow import BROKEN, LoopbackApi, Patience, event, is_news
from signerd.errors import SignerdError
from signerd.shapes import Happened


class AsyncDaemonClient(LoopbackApi, Awaiting[DaemonAddress]):
    """One connection pool to one daemon. Use as an async context manager. Otherwise as ``DaemonClient``."""

    def __init__(
        self, at: Path | DaemonAddress, *, sleep: Callable[[float], Awaitable[None]] | None = None
    ) -> None:
        """Raises DaemonNotRunning; UnsafeFolder where another user could have made the socket."""
        self.address = address_of(at)
        http = _async_connection(self.address)
        super().__init__(self.address, partial(perform, http), sleep or asyncio.sleep, http.aclose)

    @contextlib.asynccontextmanager
    async def follow(
        self, *, after: int | None = None, subject: str | None = None
    ) -> AsyncIterator[AsyncIterator[Happened | None]]:
        """What happens after the position ``after`` (None: from now on), on a connection of its own. The
        events, their end, and what is raised are those of ``EventSubscription``.
        """
        request = EventsApi.follow.request(self.address, after, subject)
        async with _async_connection(self.address) as http, contextlib.AsyncExitStack() as stack:
            with _translated(self.address):
                answer = await http.send(message(request), stream=True)
                stack.push_async_callback(answer.aclose)
                if answer.is_error:
                    raise refusal(HttpReply(answer.status_code, answer.headers, await answer.aread()))
            yield self._events(answer)

    async def _events(self, answer: httpx.Response) -> AsyncIterator[Happened | None]:
        with _translated(self.address):
            async for line in answer.aiter_lines():
                if is_news(line):
                    yield event(line, is_plain=self.address.is_plain)

    async def changes(self, subject: str) -> AsyncGenerator[None, None]:
        """As ``DaemonClient.changes``."""
        patience = Patience()
        while True:
            trouble: SignerdError | None = None
            try:
                async with self.follow(subject=subject) as lines:
                    yield
                    async for line in lines:
                        patience.answered()
                        if line is not None:
                            yield
            except BROKEN as error:
                trouble = error
            await self._sleep(patience.pause(trouble))


@contextlib.contextmanager
def _translated(address: DaemonAddress) -> Iterator[None]:
    try:
        yield
    except httpx.TransportError as error:
        raise failure(address, no_answer(error)) from None


# No proxy from the environment and no redirects: a request goes to the daemon only.
def _async_connection(address: DaemonAddress) -> httpx.AsyncClient:
    uds = None if address.socket is None else str(address.socket)
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=uds), trust_env=False)
