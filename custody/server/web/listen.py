"""Serving HTTP: on loopback unless behind a proxy, on any free port with port 0, with bounds on connections
and a graceful shutdown; and metrics for Prometheus, on a separate loopback port, never on the API's.

The bounds say how long a request may take to arrive, how long it may be, and how many there are. A reverse
proxy does this better, but may be missing or misconfigured: then a few machines that send a byte a minute
must not take every connection (slow loris).
"""

import asyncio
import fcntl
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import h11
import uvicorn
from prometheus_client import CollectorRegistry, MetricsHandler
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from custody.common.interpreter import settle
from custody.server.errors import Misconfigured

# From the connection, or the first byte of a later request on it, to the end of the headers; and from there
# to the end of the body.
HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 30.0
# Between two requests on one connection: longer than the proxy's own limit (nginx: 60 s), so that the proxy
# never sends a request on a connection that we are closing.
IDLE_SECONDS: Final = 65
MAX_HEADER_BYTES: Final = 32 * 1024
# Below the 1,024 files that a process may have open by default. Beyond them requests are
# answered with 503.
MAX_CONNECTIONS: Final = 800
# This many more are accepted and answered with 503; further ones are closed at once.
SPARE_CONNECTIONS: Final = 64


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, which would wait for ever for the rest of a request, with a deadline for each
    part.
    """

    _phase: object = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        if len(self.connections) > MAX_CONNECTIONS + SPARE_CONNECTIONS:
            self.transport.abort()
        else:
            self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def send_400_response(self, msg: str) -> None:
        """For what is no HTTP. The application's answer to its head would come second, and fail."""
        super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None, 0)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Nothing of a next request has arrived: uvicorn's keep-alive timeout applies from now on.
        if self.conn.their_state is h11.IDLE:
            self._expect(None, 0)

    def _look(self) -> None:
        """Called when data arrived. More data of the same part does not move its deadline."""
        state: Any = self.conn.their_state
        if state is h11.IDLE:
            self._expect(state, HEADER_SECONDS)
        elif state is h11.SEND_BODY:
            self._expect(state, BODY_SECONDS)
        else:
            self._expect(None, 0)

    def _expect(self, phase: object, seconds: float) -> None:
        if phase is self._phase:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._phase = phase
        self._deadline = None if phase is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


# Shorter than long polls, which a shutdown does not wait for.
SHUTDOWN_SECONDS = 10
BACKLOG = 512
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class CannotListen(Misconfigured):
    """The address cannot be served on. ``hint`` says what to do."""


@dataclass(frozen=True)
class ListenAddress:
    """Where to listen. Port 0 takes a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "ListenAddress":
        """Like ``127.0.0.1:8080`` or ``[::1]:8080``. Raises CannotListen."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        try:
            ip_address(host)
            number = int(port)
        except ValueError:
            raise CannotListen(f"{text!r} is not an address.", "Write it like 127.0.0.1:8080.") from None
        if not 0 <= number <= 65_535:
            raise CannotListen(f"{number} is not a port.", "Use a port from 0 to 65535; 0 takes a free one.")
        return cls(host, number)

    @property
    def is_loopback(self) -> bool:
        return ip_address(self.host).is_loopback

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


@contextmanager
def only_server(state: Path) -> Iterator[None]:
    """A lock on a state folder with an embedded chain, released by the kernel however the process ends.
    Raises CannotListen.
    """
    descriptor = os.open(state / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotListen(
                f"Another server is running on {state}, with its embedded chain.",
                "Stop it first, or use another state folder. Several processes need a node: "
                "see the page 'Several processes' of the documentation.",
            ) from None
        yield
    finally:
        os.close(descriptor)


def bind(address: ListenAddress, *, behind_proxy: bool) -> socket.socket:
    """Raises CannotListen: passwords and tokens must not cross a network unencrypted."""
    if not (address.is_loopback or behind_proxy):
        raise CannotListen(
            f"{address.host} can be reached from other machines, and this server speaks plain http.",
            "Listen on 127.0.0.1, or put a TLS proxy in front and add --behind-proxy.",
        )
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With an explicit IPPROTO_TCP asyncio sets TCP_NODELAY; else each response on a kept-alive connection
    # waits 40 ms for the acknowledgement of its headers.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        raise CannotListen(
            f"{address.url} cannot be used: {error.strerror}.", "Choose another port; 0 takes a free one."
        ) from error
    listener.listen(BACKLOG)
    return listener


def serve(
    app: ASGIApp,
    listener: socket.socket,
    *,
    behind_proxy: bool,
    on_ready: Callable[[ListenAddress], None],
    on_stop: Callable[[], None],
    is_over: Callable[[], bool],
) -> None:
    """Serve until SIGINT or SIGTERM, or until ``is_over``. ``on_ready`` gets the address once requests are
    answered; ``on_stop`` ends long polls.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        # Otherwise any program on this machine could forge a client's address.
        proxy_headers=behind_proxy,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        lifespan="on",
        http=BoundedProtocol,
        ws="none",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Replaced by ours: uvicorn's would raise every signal again at the end, and so kill the
            process.
            """
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            settle()
            if self.started:
                on_ready(ListenAddress(*listener.getsockname()[:2]))

        async def on_tick(self, counter: int) -> bool:
            return await super().on_tick(counter) or is_over()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            on_stop()
            await super().shutdown(sockets)

    server = Server(config)
    with first_signal(lambda: setattr(server, "should_exit", True)):
        asyncio.run(server.serve(sockets=[listener]))


@contextmanager
def first_signal(on_first: Callable[[], None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM asks for a graceful stop; the second one kills the process."""

    def asked(_number: int, _frame: object) -> None:
        # Also after the block: closing may take seconds.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        on_first()

    for number in _SIGNALS:
        signal.signal(number, asked)
    yield


def write_port_file(path: Path, address: ListenAddress) -> None:
    """Atomically: another program waits for the file."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(f"{address.port}\n")
    draft.replace(path)


# Scrapes are served one at a time: a silent client delays the others no longer than this.
CLIENT_SECONDS: Final = 5.0


class Scrape(MetricsHandler):
    """Answers at every path, and logs nothing."""

    timeout = CLIENT_SECONDS


@contextmanager
def serving_metrics(address: ListenAddress, registry: CollectorRegistry) -> Iterator[ListenAddress]:
    """Answers ``GET /metrics`` until the block ends; where it listens (port 0 takes a free one). Raises
    CannotListen.
    """
    if not address.is_loopback:
        raise CannotListen(
            f"{address.host} can be reached from other machines, and metrics tell every caller how the "
            "platform is used.",
            "Listen on 127.0.0.1, and let a collector on this machine, or in this network namespace, ask "
            "there.",
        )
    with (
        bind(address, behind_proxy=False) as listener,
        HTTPServer(listener.getsockname()[:2], Scrape.factory(registry), bind_and_activate=False) as server,
    ):
        server.socket.close()
        server.socket = listener
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield ListenAddress(*listener.getsockname()[:2])
        finally:
            server.shutdown()
            thread.join()
