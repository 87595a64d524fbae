"""Serving on a socket of our own: loopback unless a proxy stands in front, port 0 allowed, graceful shutdown."""

import asyncio
import fcntl
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

# Long polls end by themselves within a minute; a shutdown does not wait that long for them.
SHUTDOWN_SECONDS = 10
BACKLOG = 512


class CannotListen(Exception):
    """The address cannot be served on. ``hint`` says what to do."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


@dataclass(frozen=True)
class Address:
    """Where to listen. Port 0 takes a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
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
    """Held while a server runs on a state folder; the kernel frees it whatever happens. Raises CannotListen."""
    descriptor = os.open(state / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, state)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, state: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sentence = f"Another server is running on {state}."
        raise CannotListen(sentence, "Stop it first, or use another state folder.") from None


def bind(address: Address, *, behind_proxy: bool) -> socket.socket:
    """Raises CannotListen: passwords and tokens must not travel in the clear."""
    if not (address.is_loopback or behind_proxy):
        raise CannotListen(
            f"{address.host} can be reached from other machines, and this server speaks plain http.",
            "Listen on 127.0.0.1, or put a TLS proxy in front and say --behind-proxy.",
        )
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
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
    on_ready: Callable[[Address], None],
    on_stop: Callable[[], None],
) -> None:
    """Until SIGINT or SIGTERM. ``on_ready`` is told the address once requests are answered; ``on_stop`` ends long polls."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        # Otherwise any program on this machine could name another client's address.
        proxy_headers=behind_proxy,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        lifespan="on",
    )
    # While it serves, uvicorn answers these; afterwards it sends them again, which must not cut the closing short.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    host, port = listener.getsockname()[:2]
    server = _Announcing(config, lambda: on_ready(Address(host, port)), on_stop)
    asyncio.run(server.serve(sockets=[listener]))


class _Announcing(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[], None], on_stop: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def write_port_file(path: Path, address: Address) -> None:
    """Whole or not at all: another program waits for it."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(f"{address.port}\n")
    draft.replace(path)
