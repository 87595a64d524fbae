"""Serve the application on the private socket, inside the daemon's own event loop."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from signerd.loopback.access import Door, peer_uid, private_socket
from signerd.loopback.events import Streams
from signerd.loopback.place import socket_path
from signerd.loopback.routes import make_app
from signerd.loopback.service import DaemonService

# Enough for a hundred event streams and a burst of commands beside them (L11).
MAX_CONNECTIONS = 128
# The longest request line and headers that a program of ours sends are under 1 KiB.
MAX_HEADER_BYTES = 16 * 1024
KEEP_ALIVE_SECONDS = 5
# A program of ours sends its request at once; who holds a connection without one keeps others out (L11).
REQUEST_SECONDS = 10.0
# What still runs after this waits for a person at a device; the journal has what was decided.
GRACE_SECONDS = 3


@contextlib.asynccontextmanager
async def serving(service: DaemonService, state: Path) -> AsyncIterator[Path]:
    """Answer on the socket while the body runs; at its end every stream is ended and every answer is finished.

    The caller holds the state folder. Yields the socket's path.

    Raises:
        UnsafeFolder, SocketUnusable: as ``access.private_socket``.
    """
    streams = Streams()
    with private_socket(state) as listening:
        server = _Server(_config(service, streams))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await server.ready.wait()
            yield socket_path(state)
        finally:
            server.leave()
            streams.close()
            await task


def _config(service: DaemonService, streams: Streams) -> uvicorn.Config:
    return uvicorn.Config(
        Door(make_app(service, streams)),
        # The interface is typed as a class; a way to make one is what is called.
        http=partial(OwnerProtocol, owner=os.getuid()),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nobody needs the time from the program beside them, and it would have to be kept right every second.
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )


class _Server(uvicorn.Server):
    """uvicorn without its hold on the process: signals are the daemon's, and whoever waits is told of the start.

    It sleeps until it is told to leave; uvicorn itself looks ten times a second, all day long.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Take no more connections, finish what is being answered, and end."""
        # Before a stream ends: its reader would be back at once, and find a server that no longer looks after it.
        for server in self.servers:
            server.close()
        self._leaving.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._leaving.wait()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class OwnerProtocol(H11Protocol):
    """HTTP for one user: a connection of anybody else is dropped before a byte of it is read (L12)."""

    def __init__(self, *args: Any, owner: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owner = owner
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if peer_uid(transport.get_extra_info("socket")) == self._owner:
            super().connection_made(transport)
            self.loop.call_later(REQUEST_SECONDS, self._require_a_request, transport)
            return
        self._refused = True
        transport.abort()

    def _require_a_request(self, transport: asyncio.Transport) -> None:
        # uvicorn declares it as always there; it is None until the first request is whole.
        if getattr(self, "cycle", None) is None:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._refused:
            super().connection_lost(exc)
