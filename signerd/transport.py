"""A streamed answer of the daemon, with the standard library only."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from custody.exchange import Reply, Request
from custody.plain_http import TROUBLES, Connection, headers_of, no_answer, pieces
from signerd.asking import DaemonAddress, failure, refusal


class Stream:
    """A streamed answer, read in one thread and stopped from any other. Use as a context manager.

    Entering and reading raise DaemonNotRunning, DaemonFailed, or the leaf of SignerdError that the daemon
    answers with.
    """

    def __init__(self, address: DaemonAddress, request: Request) -> None:
        self._address = address
        self._request = request
        self._connection = Connection(request.url, request.silence, address.connect)
        self._exit = ExitStack()
        self._stopped = False

    def __enter__(self) -> Self:
        with self._exit, self._translated():
            self._exit.callback(self._connection.close)
            self._connection.open()
            self._answer = self._exit.enter_context(self._connection.ask(self._request))
            if self._answer.status >= http.HTTPStatus.BAD_REQUEST:
                said = next(pieces(self._answer), b"")
                raise refusal(Reply(self._answer.status, headers_of(self._answer), said))
            self._exit = self._exit.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._exit.close()

    def __iter__(self) -> Iterator[str]:
        """The lines, without their ends."""
        with self._translated():
            while line := self._answer.readline():
                yield line.decode("utf-8", "replace").rstrip("\r\n")

    def stop(self) -> None:
        """End the reading in the other thread at once."""
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
