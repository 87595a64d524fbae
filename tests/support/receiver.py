"""A webhook receiver in the test's own process: TLS on a free port of loopback, with scripted answers."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from custody.server.webhooks.sending import ClosedAnyhow

HOST = "hooks.example.org"
# A public address that is never called: `Wire` connects to the receiver instead.
PUBLIC = "8.8.4.4"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class Request:
    """As it arrived. Header names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[ssl.SSLSocket, "Receiver"], None]


def answering(raw: bytes) -> Answer:
    return lambda line, _receiver: line.sendall(raw)


def status(code: int, *headers: str) -> Answer:
    lines = [f"HTTP/1.1 {code} X", "Content-Length: 0", *headers, "", ""]
    return answering("\r\n".join(lines).encode())


TAKEN = answering(OK)


@dataclass
class Receiver:
    """``answer`` is called with each connection after its request was read. ``closing``: the test is over.
    ``reached``: a request has arrived.
    """

    port: int = 0
    arrived: list[Request] = field(default_factory=list)
    answer: Answer = TAKEN
    closing: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/hook", host: str = HOST) -> str:
        return f"https://{host}:{self.port}{path}"


@dataclass
class Wire:
    """The network of a `Sender`: names resolve as listed, and every address connects to loopback.

    ``asked`` and ``called``: the names looked up, and the addresses connected to.
    """

    addresses: list[list[str]] = field(default_factory=lambda: [[PUBLIC]])
    asked: list[str] = field(default_factory=list)
    called: list[tuple[str, int]] = field(default_factory=list)

    def resolve(self, host: str) -> list[str]:
        """Each list in turn; the last one repeats."""
        self.asked.append(host)
        return self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]

    def connect(self, place: tuple[str, int], seconds: float) -> socket.socket:
        self.called.append(place)
        return socket.create_connection(("127.0.0.1", place[1]), seconds)


@contextmanager
def receiver(context: ssl.SSLContext) -> Iterator[Receiver]:
    own = Receiver()
    context.sslsocket_class = ClosedAnyhow
    with socket.create_server(("127.0.0.1", 0)) as listening:
        own.port = listening.getsockname()[1]
        threads = [threading.Thread(target=_accept, args=(listening, context, own), name="receiver")]
        threads[0].start()
        try:
            yield own
        finally:
            own.closing.set()
            # Wakes the accepting thread, which closing alone does not.
            listening.shutdown(socket.SHUT_RDWR)
            threads[0].join(10)


def _accept(listening: socket.socket, context: ssl.SSLContext, own: Receiver) -> None:
    workers: list[threading.Thread] = []
    while not own.closing.is_set():
        with suppress(OSError):
            line, _ = listening.accept()
            worker = threading.Thread(target=_serve, args=(line, context, own), name="receiver's answer")
            worker.start()
            workers.append(worker)
    for worker in workers:
        worker.join(10)


def _serve(line: socket.socket, context: ssl.SSLContext, own: Receiver) -> None:
    line.settimeout(10)
    with suppress(OSError), line, context.wrap_socket(line, server_side=True) as secured:
        own.arrived.append(_read(secured))
        own.reached.set()
        own.answer(secured, own)
        with suppress(OSError):
            secured.unwrap()


def _read(line: ssl.SSLSocket) -> Request:
    with line.makefile("rb") as file:
        first = file.readline().decode().strip()
        headers: dict[str, str] = {}
        while text := file.readline().decode().strip():
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        return Request(first, headers, file.read(int(headers.get("content-length", "0"))))
