"""The daemon's calls as two clients, one that waits and one that awaits; and its events, for both.

A program that waits starts without an event loop: asyncio is imported where it is used.
"""

import contextlib
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeVar

import httpx
from pydantic import ValidationError

from custody.exchange import Awaiting, Reply, Request, Waiting
from custody.pace import Backoff, no_jitter
from custody.transports import AwaitingTransport, WaitingTransport, message, no_answer
from signerd.asking import SILENCE_SECONDS, DaemonAddress, failure, refusal
from signerd.client.api import Api
from signerd.errors import DaemonFailed, DaemonNotRunning, SignerdError
from signerd.shapes import Happened, calls

R = TypeVar("R")
# A daemon that is started anew asks its keyring and its devices first.
PATIENCE_SECONDS: Final = 300.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
_DATA: Final = "data: "
# A stream that ended so is taken up again.
_BROKEN: Final = (DaemonNotRunning, DaemonFailed)


def _address(at: Path | DaemonAddress) -> DaemonAddress:
    return at if isinstance(at, DaemonAddress) else DaemonAddress.of_folder(at)


class DaemonClient(Api, Waiting[DaemonAddress]):
    """One connection pool to one daemon. Use as a context manager; one thread at a time.

    ``DaemonClient(state_folder)`` is the person's, over the private socket; ``DaemonClient.at(url, token)``
    an app's.
    """

    def __init__(self, at: Path | DaemonAddress, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises DaemonNotRunning; UnsafeFolder where another user could have made the socket."""
        self.address = _address(at)
        self.address.require_answering()
        self._http = _connection(self.address)
        super().__init__(self.address, WaitingTransport(self._http), sleep)

    @classmethod
    def at(cls, url: str, token: str | None = None) -> Self:
        """Over TCP. Without a token only ``pair`` is answered. Raises InvalidRequest for a URL of another
        machine.
        """
        return cls(DaemonAddress.of_address(url, token))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def follow(self, *, after: int | None = None, subject: str | None = None) -> "Following":
        """What happens after the position ``after`` (None: from now on). Use the answer as a
        context manager.
        """
        return Following(self.address, _stream(self.address, subject, after=after))

    def changes(self, subject: str, *, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
        """When to look how ``subject`` stands, for ever: now, after each event about it, and when the daemon
        is back.

        What happened before a restart is in no event: a program that looks only at these misses nothing.
        Raises as ``events``.
        """
        with contextlib.closing(self._heard(subject, Resumption(None, patience))) as heard:
            for _line in heard:
                yield None

    def events(
        self, *, after: int | None = None, subject: str | None = None, patience: float = PATIENCE_SECONDS
    ) -> Iterator[Happened]:
        """What happens, for ever: a stream that breaks off is taken up where it was.

        Raises, as the daemon answers; DaemonNotRunning or DaemonFailed where it was away for ``patience``
        seconds.
        """
        with contextlib.closing(self._heard(subject, Resumption(after, patience))) as heard:
            for line in heard:
                if line is not None:
                    yield line

    def _heard(self, subject: str | None, place: "Resumption") -> Generator[Happened | None, None, None]:
        """Each line, and None where a stream begins."""
        while True:
            trouble: SignerdError | None = None
            try:
                with Following(self.address, _stream(self.address, subject, resumed=place)) as lines:
                    yield None
                    for line in lines:
                        place.hear(line)
                        if line is not None:
                            yield line
            except _BROKEN as error:
                trouble = error
            self._sleep(place.pause(trouble))


class AsyncDaemonClient(Api, Awaiting[DaemonAddress]):
    """One connection pool to one daemon. Use as an async context manager. Otherwise as ``DaemonClient``."""

    def __init__(
        self, at: Path | DaemonAddress, *, sleep: Callable[[float], Awaitable[None]] | None = None
    ) -> None:
        """Raises DaemonNotRunning; UnsafeFolder where another user could have made the socket."""
        import asyncio

        self.address = _address(at)
        self._http = _async_connection(self.address)
        super().__init__(self.address, AwaitingTransport(self._http), sleep or asyncio.sleep)

    @classmethod
    def at(cls, url: str, token: str | None = None) -> Self:
        """Over TCP. Without a token only ``pair`` is answered. Raises InvalidRequest for a URL of another
        machine.
        """
        return cls(DaemonAddress.of_address(url, token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    def follow(self, *, after: int | None = None, subject: str | None = None) -> "AsyncFollowing":
        """What happens after the position ``after`` (None: from now on). Use the answer as an async context
        manager.
        """
        return AsyncFollowing(self.address, _stream(self.address, subject, after=after))

    async def changes(self, subject: str, *, patience: float = PATIENCE_SECONDS) -> AsyncIterator[None]:
        """When to look how ``subject`` stands, for ever: as ``DaemonClient.changes``."""
        async with contextlib.aclosing(self._heard(subject, Resumption(None, patience))) as heard:
            async for _line in heard:
                yield None

    async def events(
        self, *, after: int | None = None, subject: str | None = None, patience: float = PATIENCE_SECONDS
    ) -> AsyncIterator[Happened]:
        """What happens, for ever: as ``DaemonClient.events``."""
        async with contextlib.aclosing(self._heard(subject, Resumption(after, patience))) as heard:
            async for line in heard:
                if line is not None:
                    yield line

    async def _heard(self, subject: str | None, place: "Resumption") -> AsyncGenerator[Happened | None, None]:
        """Each line, and None where a stream begins."""
        while True:
            trouble: SignerdError | None = None
            try:
                stream = _stream(self.address, subject, resumed=place)
                async with AsyncFollowing(self.address, stream) as lines:
                    yield None
                    async for line in lines:
                        place.hear(line)
                        if line is not None:
                            yield line
            except _BROKEN as error:
                trouble = error
            await self._sleep(place.pause(trouble))


class Following:
    """An open stream on a connection of its own: iterate it in any one thread, ``stop`` it from any other.

    Yields each line as it happens, and None now and then while nothing does. Ends when the daemon ends it.
    Raises as DaemonClient does.
    """

    def __init__(self, address: DaemonAddress, request: Request) -> None:
        self._address = address
        self._request = request
        self._stopped = False
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._address.require_answering()
        http = self._exit.enter_context(_connection(self._address))
        with self._exit, _translated(self._address):
            self._answer = http.send(message(self._request), stream=True)
            self._exit.callback(self._answer.close)
            if self._answer.is_error:
                raise refusal(Reply(self._answer.status_code, self._answer.headers, self._answer.read()))
            self._exit = self._exit.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._exit.close()

    def __iter__(self) -> Iterator[Happened | None]:
        try:
            with _translated(self._address):
                for line in self._answer.iter_lines():
                    if _is_news(line):
                        yield _event(line)
        except DaemonFailed:
            if not self._stopped:
                raise

    def stop(self) -> None:
        """End the iteration in the other thread, at once."""
        self._stopped = True
        connected: socket.socket = self._answer.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


class AsyncFollowing:
    """An open stream on a connection of its own. Yields, ends and raises as ``Following``; leave it to stop
    it.
    """

    def __init__(self, address: DaemonAddress, request: Request) -> None:
        self._address = address
        self._request = request
        self._exit = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        http = await self._exit.enter_async_context(_async_connection(self._address))
        async with self._exit:
            with _translated(self._address):
                self._answer = await http.send(message(self._request), stream=True)
                self._exit.push_async_callback(self._answer.aclose)
                if self._answer.is_error:
                    said = await self._answer.aread()
                    raise refusal(Reply(self._answer.status_code, self._answer.headers, said))
            self._exit = self._exit.pop_all()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._exit.aclose()

    async def __aiter__(self) -> AsyncIterator[Happened | None]:
        with _translated(self._address):
            async for line in self._answer.aiter_lines():
                if _is_news(line):
                    yield _event(line)


@dataclass
class Resumption:
    """Where a reader is, and how long it waits for a daemon that has gone.

    ``position``: the number of the last line that was read; None: from now on.
    """

    position: int | None
    patience: float = PATIENCE_SECONDS
    _backoff: Backoff = field(
        default_factory=lambda: Backoff(no_jitter, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    )
    _waited: float = 0.0

    def hear(self, line: Happened | None) -> None:
        self._backoff.reset()
        self._waited = 0.0
        if line is not None:
            self.position = line.number

    def pause(self, trouble: SignerdError | None) -> float:
        """Seconds until the next try. Raises ``trouble`` where patience is at its end."""
        if self._waited >= self.patience:
            raise trouble or DaemonNotRunning("signerd stopped, and was not started again")
        pause = min(self._backoff.next(), self.patience - self._waited)
        self._waited += pause
        return pause


def _stream(
    address: DaemonAddress,
    subject: str | None,
    *,
    after: int | None = None,
    resumed: Resumption | None = None,
) -> Request:
    query = {name: value for name, value in {"after": after, "subject": subject}.items() if value is not None}
    position = None if resumed is None else resumed.position
    headers = {} if position is None else {"Last-Event-ID": str(position)}
    return address.request("GET", calls.EVENTS.path, SILENCE_SECONDS, query=query, headers=headers)


def _is_news(line: str) -> bool:
    """Whether ``_event`` has anything to say of it."""
    return line.startswith((_DATA, ":"))


def _event(line: str) -> Happened | None:
    """What a line tells; None for one that only says that the daemon is there. Raises DaemonFailed."""
    if not line.startswith(_DATA):
        return None
    try:
        return Happened.model_validate_json(line.removeprefix(_DATA))
    except ValidationError:
        raise DaemonFailed("a line of the daemon's events makes no sense") from None


@contextlib.contextmanager
def _translated(address: DaemonAddress) -> Iterator[None]:
    try:
        yield
    except httpx.TransportError as error:
        raise failure(address, no_answer(error)) from None


# No proxy from the environment, no redirect: a request goes to the daemon or nowhere.
def _connection(address: DaemonAddress) -> httpx.Client:
    uds = None if address.socket is None else str(address.socket)
    return httpx.Client(transport=httpx.HTTPTransport(uds=uds), trust_env=False)


def _async_connection(address: DaemonAddress) -> httpx.AsyncClient:
    uds = None if address.socket is None else str(address.socket)
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=uds), trust_env=False)
