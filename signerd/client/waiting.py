"""The blocking client: the daemon's calls and events, without an event loop and without httpx."""

import http.client
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from custody.common.exchange import HttpReply, HttpRequest, Waiting
from custody.common.plain_http import TROUBLES, PlainConnection, headers_of, no_answer, perform, pieces
from signerd import shapes
from signerd.api.account import EventsApi
from signerd.asking import DaemonAddress, address_of, failure, refusal
from signerd.client.flow import BROKEN, LoopbackApi, Patience, event, is_news
from signerd.errors import SignerdError


class DaemonClient(LoopbackApi, Waiting[DaemonAddress]):
    """The daemon, over a connection for each call. Use as a context manager; one thread at a time.

    ``DaemonClient(state_folder)`` is the person's, over the private socket; ``DaemonClient.at(url, token)``
    an app's.
    """

    def __init__(self, at: Path | DaemonAddress, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises DaemonNotRunning; UnsafeFolder where another user could have made the socket."""
        self.address = address_of(at)
        super().__init__(self.address, partial(perform, connect=self.address.connect), sleep)

    @classmethod
    def plain(cls, state: Path) -> Self:
        """The person's client for short commands: answers have the attributes of their shapes and are not
        validated.

        Raises as the constructor.
        """
        return cls(replace(DaemonAddress.of_folder(state), is_plain=True))

    def follow(self, *, after: int | None = None, subject: str | None = None) -> "EventSubscription":
        """What happens after the position ``after`` (None: from now on). Use the answer as a
        context manager.
        """
        return EventSubscription(self.address, EventsApi.follow.request(self.address, after, subject))

    def changes(self, subject: str) -> Generator[None, None, None]:
        """Yields whenever the state of ``subject`` may have changed: now, after each event, and when the
        daemon is back.

        Events from before a restart are lost; a program that looks each time this yields misses nothing.
        Raises what the daemon answers with; DaemonNotRunning or DaemonFailed where it was away for
        ``PATIENCE_SECONDS``.
        """
        patience = Patience()
        while True:
            trouble: SignerdError | None = None
            try:
                with self.follow(subject=subject) as lines:
                    yield
                    for line in lines:
                        patience.answered()
                        if line is not None:
                            yield
            except BROKEN as error:
                trouble = error
            self._sleep(patience.pause(trouble))


class EventSubscription:
    """An open stream of events on its own connection: iterate it in one thread, ``stop`` it from another. Use
    as a context manager.

    Yields each event, and None as a heartbeat. Ends when the daemon ends it. Entering and reading raise
    DaemonNotRunning, DaemonFailed, or the leaf of SignerdError that the daemon answers with.
    """

    def __init__(self, address: DaemonAddress, request: HttpRequest) -> None:
        self._address = address
        self._request = request
        self._connection = PlainConnection(request.url, request.silence, address.connect)
        self._exit = ExitStack()
        self._stopped = False

    def __enter__(self) -> Self:
        with self._exit, self._translated():
            self._exit.callback(self._connection.close)
            self._connection.open()
            self._answer = self._exit.enter_context(self._connection.ask(self._request))
            if self._answer.status >= http.HTTPStatus.BAD_REQUEST:
                said = next(pieces(self._answer), b"")
                raise refusal(HttpReply(self._answer.status, headers_of(self._answer), said))
            self._exit = self._exit.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._exit.close()

    def __iter__(self) -> "Iterator[shapes.Happened | None]":
        with self._translated():
            while line := self._answer.readline():
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if is_news(text):
                    yield event(text, is_plain=self._address.is_plain)

    def stop(self) -> None:
        """End the iteration in the other thread, at once."""
        self._stopped = True
        with suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except TROUBLES as error:
            if not self._stopped:
                raise failure(self._address, no_answer(error)) from error
