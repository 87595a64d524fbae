"""The standard library as the transport of ``custody.common.exchange``, for a program that waits.

A command starts for each question: importing httpx alone would be half of its start.
"""

import http.client
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from custody.common.deadlines import Deadline
from custody.common.exchange import (
    CONNECT_SECONDS,
    Body,
    HttpReply,
    HttpRequest,
    NoAnswer,
    Outcome,
    Unfit,
    Why,
)

if TYPE_CHECKING:
    from ssl import SSLContext

PIECE = 1 << 16
# A bitcoind closes a connection that was idle for 30 seconds, other servers later: we close it first.
KEPT_SECONDS = 15.0


class ConnectFailed(Exception):
    """No connection: no process listens, or its certificate is not trusted."""


TROUBLES = (ConnectFailed, TimeoutError, http.client.HTTPException, OSError)
# A field has the module's name.
Socket = socket.socket
Connect = Callable[[str, int], Socket]


def over_tcp(host: str, port: int) -> Socket:
    """Raises OSError."""
    line = socket.create_connection((host, port), CONNECT_SECONDS)
    # A body is sent after its headers, and would wait until these are acknowledged.
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def trust(ca_file: Path | None) -> "SSLContext":
    """Certificates are always verified: against the usual authorities, or a private one alone. Raises OSError
    for a file that cannot be used.
    """
    # Imported here: a program that asks over a private socket starts without TLS.
    import ssl

    import certifi

    return ssl.create_default_context(cafile=ca_file or certifi.where())


def tls_for(url: str, ca_file: Path | None) -> "SSLContext | None":
    """None for plain HTTP. Raises as ``trust``."""
    return trust(ca_file) if urlsplit(url).scheme == "https" else None


class PlainConnection(http.client.HTTPConnection):
    """HTTP over what ``connect`` opens: never through a proxy. ``kept_until``: where it is kept open."""

    kept_until = 0.0

    def __init__(self, url: str, seconds: float, connect: Connect) -> None:
        """``seconds``: between two pieces of the answer."""
        place = urlsplit(url)
        if place.scheme == "https":
            self.default_port = http.client.HTTPS_PORT
        # Without a port http.client takes the last group of an IPv6 address for one.
        super().__init__(str(place.hostname), place.port or self.default_port, timeout=seconds)
        self._connect = connect

    def open(self, deadline: Deadline | None = None, tls: "SSLContext | None" = None) -> None:
        """Raises ConnectFailed."""
        try:
            self.sock = self._connect(self.host, self.port)
            if deadline is not None:
                deadline.watch(self.sock)
            if tls is not None:
                self.sock = tls.wrap_socket(self.sock, server_hostname=self.host)
        except OSError as error:
            raise ConnectFailed(error) from None
        self.sock.settimeout(self.timeout)

    def ask(self, request: HttpRequest) -> http.client.HTTPResponse:
        """Raises one of ``TROUBLES``."""
        place = urlsplit(request.url)
        target = f"{place.path or '/'}?{place.query}" if place.query else place.path or "/"
        try:
            # A server that refuses a body may answer, and close, before it has read all of it.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.request(request.method, target, request.content, dict(request.headers))
        except ValueError:
            # Its text quotes the value, which may be a token.
            raise http.client.HTTPException("A header's value has a character that HTTP forbids.") from None
        return self.getresponse()

    def exchange(self, request: HttpRequest, tls: "SSLContext | None") -> Outcome:
        """Over this connection, which is opened unless it is kept open. ``tls``: for https."""
        is_kept, self.kept_until = time.monotonic() < self.kept_until, 0.0
        with Deadline(request.whole) as deadline:
            try:
                if self.sock is None or not is_kept or _is_readable(self.sock):
                    self.close()
                    self.open(deadline, tls)
                else:
                    deadline.watch(self.sock)
                self.sock.settimeout(request.silence)
                answer = self.ask(request)
                body = Body(request, headers := headers_of(answer))
                for piece in pieces(answer):
                    body.add(piece)
                # What http.client leaves to its caller where it reads by pieces.
                if deadline.is_over or answer.length:
                    raise ConnectionError("the answer breaks off")
                reply = HttpReply(answer.status, headers, body.whole(), request.path)
            except (*TROUBLES, Unfit) as error:
                self.close()
                if deadline.is_over:
                    return NoAnswer(Why.ENDLESS, TimeoutError("The answer has no end."))
                return no_answer(error)
        self.kept_until = time.monotonic() + KEPT_SECONDS
        return reply


def perform(request: HttpRequest, connect: Connect = over_tcp, *, tls: "SSLContext | None" = None) -> Outcome:
    """Each exchange has a connection of its own. ``tls``: for https."""
    with closing(PlainConnection(request.url, request.silence, connect)) as connection:
        return connection.exchange(request, tls)


class KeptConnections:
    """To one server that is asked often: at most ``most`` exchanges at a time, each over a connection that is
    kept for the next one. Thread-safe.
    """

    def __init__(self, url: str, most: int) -> None:
        self.tls = tls_for(url, None)
        self._free = threading.BoundedSemaphore(most)
        self._idle: list[PlainConnection] = []
        self._closed = False

    def __call__(self, request: HttpRequest) -> Outcome:
        if not self._free.acquire(timeout=request.whole):
            return NoAnswer(Why.LATE, TimeoutError("Too many exchanges are under way."))
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = PlainConnection(request.url, request.silence, over_tcp)
        try:
            return connection.exchange(request, self.tls)
        finally:
            if self._closed:
                connection.close()
            self._idle.append(connection)
            self._free.release()

    def close(self) -> None:
        """Ends the idle connections; one in use ends with its exchange. Safe to repeat."""
        self._closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


def _is_readable(line: Socket) -> bool:
    """Whether the server has closed it, or says what it was not asked for."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))


def pieces(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """http.client accepts a chunk of negative size, and ``read`` would take all that follows into memory at
    once; ``read1`` takes a buffer of it.
    """
    read = answer.read1 if answer.chunked else answer.read
    while piece := read(PIECE):
        yield piece


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    """By their names in lower case; several of one name are joined (RFC 9110, section 5.3)."""
    return {name.lower(): ", ".join(answer.headers.get_all(name, ())) for name in answer.headers}


def no_answer(error: Exception) -> NoAnswer:
    match error:
        case ConnectFailed():
            return NoAnswer(Why.NO_CONNECTION, error.args[0])
        case TimeoutError():
            return NoAnswer(Why.LATE, error)
        case Unfit():
            return NoAnswer(Why.UNFIT, error)
        case _:
            return NoAnswer(Why.BROKEN, error)
