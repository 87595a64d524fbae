"""The standard library as the transport of ``custody.exchange``, for a program that waits: over the daemon's
private socket, or over TCP on this machine.

A command starts anew for each question: httpx alone would be half of what its start takes.
"""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from custody.deadlines import Deadline
from custody.exchange import Body, NoAnswer, Outcome, Reply, Request, Unfit, Why
from signerd.asking import DaemonAddress, failure, refusal

_PIECE = 1 << 16


class _Refused(Exception):
    """No process listens."""


TROUBLES = (_Refused, TimeoutError, http.client.HTTPException, OSError)


class _Connection(http.client.HTTPConnection):
    """HTTP over the private socket, or TCP: never through a proxy."""

    def __init__(self, address: DaemonAddress, seconds: float) -> None:
        place = urlsplit(address.url)
        super().__init__(str(place.hostname), place.port, timeout=seconds)
        self._address = address

    def connect(self) -> None:
        try:
            self.sock = self._address.connect(self.host, self.port)
        except OSError as error:
            raise _Refused(error) from None
        self.sock.settimeout(self.timeout)


@dataclass(frozen=True)
class SocketTransport:
    """Each exchange has a connection of its own."""

    address: DaemonAddress

    def __call__(self, request: Request) -> Outcome:
        with Deadline(request.whole) as deadline:
            try:
                with self._answered(request, deadline) as answer:
                    body = Body(request.path, headers := _headers(answer))
                    while piece := answer.read(_PIECE):
                        body.add(piece)
                    # What http.client leaves to its caller where it reads by pieces.
                    if deadline.is_over or answer.length:
                        raise ConnectionError("the answer breaks off")
                    return Reply(answer.status, headers, body.whole(), request.path)
            except (*TROUBLES, Unfit) as error:
                return _no_answer(TimeoutError() if deadline.is_over else error)

    @contextmanager
    def _answered(self, request: Request, deadline: Deadline) -> Iterator[http.client.HTTPResponse]:
        connection = _Connection(self.address, request.silence)
        try:
            connection.connect()
            deadline.watch(connection.sock)
            yield _sent(connection, request)
        finally:
            connection.close()


class Stream:
    """An open answer without an end, read in one thread and stopped from any other. Use as a context manager.

    Raises, when it is entered and while it is read: DaemonNotRunning, DaemonFailed; the leaf of SignerdError
    that the daemon answers with.
    """

    def __init__(self, address: DaemonAddress, request: Request) -> None:
        self._address = address
        self._request = request
        self._connection = _Connection(address, request.silence)
        self._exit = ExitStack()
        self._stopped = False

    def __enter__(self) -> Self:
        with self._exit, self._translated():
            self._exit.callback(self._connection.close)
            self._connection.connect()
            self._answer = self._exit.enter_context(_sent(self._connection, self._request))
            if self._answer.status >= http.HTTPStatus.BAD_REQUEST:
                said = self._answer.read(_PIECE)
                raise refusal(Reply(self._answer.status, _headers(self._answer), said))
            self._exit = self._exit.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._exit.close()

    def __iter__(self) -> Iterator[str]:
        """Line by line, without their ends."""
        with self._translated():
            while line := self._answer.readline():
                yield line.decode("utf-8", "replace").rstrip("\r\n")

    def stop(self) -> None:
        """End the reading in the other thread, at once."""
        self._stopped = True
        with suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except TROUBLES as error:
            if not self._stopped:
                raise failure(self._address, _no_answer(error)) from error


def _sent(connection: http.client.HTTPConnection, request: Request) -> http.client.HTTPResponse:
    place = urlsplit(request.url)
    target = f"{place.path}?{place.query}" if place.query else place.path
    # A server that refuses a body may answer, and close, before it has read all of it.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.request(request.method, target, request.content, dict(request.headers))
    return connection.getresponse()


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def _no_answer(error: Exception) -> NoAnswer:
    match error:
        case _Refused():
            return NoAnswer(Why.NO_CONNECTION, error.args[0])
        case TimeoutError():
            return NoAnswer(Why.LATE, error)
        case Unfit():
            return NoAnswer(Why.UNFIT, error)
        case _:
            return NoAnswer(Why.BROKEN, error)
