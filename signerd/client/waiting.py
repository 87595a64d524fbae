"""The shell for programs that wait. All that is said is in ``calls``."""

import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from signerd.client import events
from signerd.client.address import DaemonAddress, timeout
from signerd.client.api import Api
from signerd.client.events import Resumption
from signerd.client.flow import PlainShell, Plan, Reply, Send, Wait, refusal
from signerd.endpoint import QUICK_SECONDS
from signerd.errors import DaemonFailed, SignerdError
from signerd.shapes import Happened

R = TypeVar("R")


class DaemonClient(Api, PlainShell):
    """One connection pool to one daemon. Use as a context manager; one thread at a time.

    ``DaemonClient(state_folder)`` is the person's, over the private socket; ``DaemonClient.at(url, token)`` an app's.
    """

    def __init__(self, at: Path | DaemonAddress, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises DaemonNotRunning, UnsafeFolder: nothing is sent to a socket that somebody else could have made."""
        self.address = at if isinstance(at, DaemonAddress) else DaemonAddress.of_folder(at)
        self.address.require_answering()
        self._sleep = sleep
        self._http = _connection(self.address, QUICK_SECONDS)

    @classmethod
    def at(cls, url: str, token: str | None = None) -> Self:
        """Over TCP. Without a token only ``pair`` is answered. Raises InvalidRequest for a URL of another machine."""
        return cls(DaemonAddress.of_address(url, token))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def run(self, plan: Plan[R]) -> R:
        """Drive a plan to its answer."""
        reply: Reply | None = None
        while True:
            try:
                step = plan.send(reply)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the plan's type
            match step:
                case Send():
                    reply = self._perform(step)
                case Wait(seconds):
                    reply = None
                    self._sleep(seconds)

    def _perform(self, send: Send) -> Reply:
        with self.address.translated():
            answer = self._http.request(
                send.verb,
                self.address.base + send.path,
                params=dict(send.query),
                json=send.body,
                timeout=timeout(send.seconds),
            )
        return Reply(answer.status_code, answer.content)

    def follow(self, *, after: int | None = None, subject: str | None = None) -> "Following":
        """What happens after the position ``after`` (None: from now on). Use the answer as a context manager."""
        return Following(self.address, events.asked(after, subject))

    def changes(self, subject: str, *, patience: float = events.PATIENCE_SECONDS) -> Iterator[None]:
        """When to look how ``subject`` stands, for ever: now, after whatever happens to it, and when the daemon is back.

        What happened before a restart is in no event: who looks only at these misses nothing. Raises as ``events``.
        """
        with contextlib.closing(self._heard(subject, Resumption(None, patience))) as heard:
            for _line in heard:
                yield None

    def events(
        self,
        *,
        after: int | None = None,
        subject: str | None = None,
        patience: float = events.PATIENCE_SECONDS,
    ) -> Iterator[Happened]:
        """What happens, for ever: a stream that breaks off is taken up where it was.

        Raises, as the daemon answers; DaemonNotRunning or DaemonFailed where it was away for ``patience`` seconds.
        """
        with contextlib.closing(self._heard(subject, Resumption(after, patience))) as heard:
            for line in heard:
                if line is not None:
                    yield line

    def _heard(self, subject: str | None, place: Resumption) -> Generator[Happened | None, None, None]:
        """Each line, and None where a stream begins."""
        while True:
            trouble: SignerdError | None = None
            try:
                with Following(self.address, events.asked(None, subject), place.headers()) as lines:
                    yield None
                    for line in lines:
                        place.hear(line)
                        if line is not None:
                            yield line
            except events.BROKEN as error:
                trouble = error
            self._sleep(place.pause(trouble))


class Following:
    """An open stream on a connection of its own: iterate it in any one thread, ``stop`` it from any other.

    Yields each line as it happens, and None now and then while nothing does. Ends when the daemon ends it. Raises as
    DaemonClient does.
    """

    def __init__(
        self, address: DaemonAddress, query: Mapping[str, str | int], headers: Mapping[str, str] | None = None
    ) -> None:
        self._address = address
        self._query = dict(query)
        self._headers = dict(headers or {})
        self._stopped = False
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._address.require_answering()
        http = self._exit.enter_context(_connection(self._address, events.SILENCE_SECONDS))
        with self._exit, self._address.translated():
            url = self._address.base + events.PATH
            stream = http.stream("GET", url, params=self._query, headers=self._headers)
            self._answer = self._exit.enter_context(stream)
            if self._answer.is_error:
                self._answer.read()
                raise refusal(Reply(self._answer.status_code, self._answer.content))
            self._exit = self._exit.pop_all()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._exit.close()

    def __iter__(self) -> Iterator[Happened | None]:
        try:
            with self._address.translated():
                for line in self._answer.iter_lines():
                    if events.is_news(line):
                        yield events.heard(line)
        except DaemonFailed:
            if not self._stopped:
                raise

    def stop(self) -> None:
        """End the iteration in the other thread, at once."""
        self._stopped = True
        connected: socket.socket = self._answer.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


def _connection(address: DaemonAddress, seconds: float) -> httpx.Client:
    # No proxy from the environment, no redirect: these words go to the daemon or nowhere.
    transport = httpx.HTTPTransport(uds=None if address.socket is None else str(address.socket))
    return httpx.Client(
        transport=transport, timeout=timeout(seconds), headers=dict(address.headers), trust_env=False
    )
