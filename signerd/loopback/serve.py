"""The loopback API: its application, served on the private socket and on the port."""

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from custody.common.exchange import phrase_of
from signerd.api.described import described
from signerd.daemon.service import Daemon
from signerd.endpoint import ANSWERS, PREFIX, socket_path
from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute, SignerdError
from signerd.loopback.access.gates import LASTING_NAMES, AppRates, Gate, PortGate, SocketGate, hosts_at
from signerd.loopback.access.guard import Guard, NoPage
from signerd.loopback.access.listening import listening_ports, private_socket
from signerd.loopback.access.peers import Whose, peer_uid
from signerd.loopback.access.sessions import PageSessions
from signerd.loopback.answers import ROUTES, Context
from signerd.loopback.binding import JSON, NOT_IN_THE_TABLE, UNFORESEEN, Called, Method, bind, route
from signerd.loopback.description import describe
from signerd.loopback.events import Streams
from signerd.loopback.page import entering
from signerd.loopback.page.entering import PageMount
from signerd.loopback.page.routes import make_page
from signerd.problems import CONTENT_TYPE, headers_of, problem
from signerd.shapes.limits import MAX_PSBT_TEXT

# A form encodes a character that is no letter or digit in three; base64 has few of them.
MAX_ANSWER_FORM = MAX_PSBT_TEXT * 5 // 4
# The routes whose body may be larger than the common limit.
LARGER = {(row.method, PREFIX + row.path): row.max_body for row in ROUTES if row.max_body is not None} | {
    ("POST", ANSWERS): MAX_ANSWER_FORM
}
# Enough for a hundred event streams and a burst of commands (L11). The socket and the port have as many each:
# flooding the port does not lock out the command line.
MAX_CONNECTIONS = 128
# Our own programs send less than 1 KiB of request line and headers.
MAX_HEADER_BYTES = 16 * 1024
# Longer than clients' pools keep a connection (httpx 5 s, aiohttp 15 s), so that no request meets its end.
KEEP_ALIVE_SECONDS = 65
# Our programs send their request at once; an idle connection takes another's place (L11).
REQUEST_SECONDS = 10.0
# Requests that take longer wait for a person at a device; the journal has the decision.
GRACE_SECONDS = 3


def seconds_awake_or_not() -> float:
    """Counts while the machine is suspended, so that a page session ends then too. Linux's monotonic clock
    stops then, macOS's does not.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


@contextlib.asynccontextmanager
async def serving(
    service: Daemon,
    state: Path,
    *,
    port: int | None = None,
    handed: socket.socket | None = None,
    clock: Callable[[], float] = seconds_awake_or_not,
    sessions: PageSessions | None = None,
) -> AsyncIterator[Path]:
    """Serve during the body; at its end all streams are closed and all answers finished.

    The caller holds the state folder. Yields the path of the socket. ``port``: of TCP, 0 for any free one,
    None for none; where it cannot be served, the socket still is, and ``service.page_address`` says why.
    ``handed``: the private socket if the service manager opened it. ``sessions``: of the page; None: new
    ones.

    Raises:
        UnsafeFolder, SocketUnusable: as ``private_socket``.
    """
    streams, rates = Streams(), AppRates(clock)
    seated = PageSessions(clock) if sessions is None else sessions
    app = make_app(service, streams, seated)
    with contextlib.ExitStack() as stack:
        private = stack.enter_context(private_socket(state, handed))
        servers = {_server(app, SocketGate(service.apps, rates), peer_uid): [private]}
        if port is not None:
            # Off the loop: it may ask which program has the port.
            listeners = await asyncio.to_thread(stack.enter_context, listening_ports(port))
            address = service.page_address
            address.port, address.notes = listeners.port, listeners.notes
            if listeners.whose is not None and listeners.port is not None:
                gate = PortGate(listeners.port, address.name, service.apps, seated, rates)
                lasting = hosts_at(listeners.port, *LASTING_NAMES)
                servers[_server(app, gate, listeners.whose, lasting)] = list(listeners.sockets)
        async with _answering(servers, streams):
            yield socket_path(state)


@contextlib.asynccontextmanager
async def _answering(
    servers: Mapping[uvicorn.Server, list[socket.socket]], streams: Streams
) -> AsyncIterator[None]:
    """The two ends of ``uvicorn.Server.serve``. Between them it would wake ten times a second, and take the
    process's signals.
    """
    for server, sockets in servers.items():
        await server.startup(sockets)
    try:
        yield
    finally:
        # All of them before the streams end, because a stream's reader reconnects at once.
        for server in servers:
            for listener in server.servers:
                listener.close()
        streams.close()
        await asyncio.gather(*(server.shutdown(sockets) for server, sockets in servers.items()))


def _server(
    app: Starlette, gate: Gate, whose: Whose, without_page: frozenset[str] = frozenset()
) -> uvicorn.Server:
    # Typed as a class, but a factory works.
    protocol: Any = partial(OwnerProtocol, owner=os.getuid(), whose=whose)
    config = uvicorn.Config(
        NoPage(Guard(app, gate, larger=LARGER), without_page),
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # No caller on the same machine needs it, and uvicorn would update it every second.
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


class OwnerProtocol(H11Protocol):
    """HTTP for one user: another user's connection is dropped before a byte is read (L12), and one without a
    complete request in time.
    """

    def __init__(self, *args: Any, owner: int, whose: Whose, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owner = owner
        self._whose = whose
        self._refused = False
        self._last: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._refused = self._whose(transport.get_extra_info("socket")) != self._owner
        if self._refused:
            transport.abort()
            return
        super().connection_made(transport)
        self._await_a_request(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._refused:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Data after an answer is the start of a request, for whose rest uvicorn would wait for ever.
        cycle = self.cycle
        if cycle is not None and cycle.response_complete and cycle is not self._last:
            self._await_a_request(cycle)

    def _await_a_request(self, last: RequestResponseCycle | None) -> None:
        """``last``: the cycle answered before it, if any."""
        self._last = last
        self.loop.call_later(REQUEST_SECONDS, self._require_another, last)

    def _require_another(self, last: RequestResponseCycle | None) -> None:
        # None until the first request is complete, whatever uvicorn's annotation says.
        if self.cycle is last:
            self.transport.abort()

    def _get_upgrade(self) -> bytes | None:
        # The gate refuses upgrades; uvicorn would log two lines for each.
        return None


async def interface(_request: Request) -> Response:
    return Response(_described(), media_type=JSON)


@cache
def _described() -> bytes:
    """Cached, because it takes some tenths of a second and any caller may repeat the request (L11)."""
    return json.dumps(describe(ROUTES, PREFIX), separators=(",", ":")).encode()


def make_app(service: Daemon, streams: Streams, sessions: PageSessions) -> Starlette:
    """The application of one daemon, to be wrapped in an ``access.guard.Guard``."""
    context = partial(Context, service, streams, sessions)

    def bound(call: described[..., Any], to: Callable[[Context], Method]) -> Called:
        return bind(call, lambda caller: to(context(caller)))

    app = Starlette(
        routes=[
            *(route(call.method, PREFIX + call.path, bound(call, to)) for call, to in ROUTES.items()),
            route("GET", f"{PREFIX}/openapi.json", interface),
            *entering.ROUTES,
            PageMount("", app=make_page(context)),
        ],
        exception_handlers=dict.fromkeys((SignerdError, HTTPException, Exception), _failed),
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.sessions = service, sessions
    return app


async def _failed(request: Request, error: Exception) -> Response:
    """Starlette raises a bug again after this response, so that it is logged with its traceback."""
    if isinstance(error, HTTPException) and error.status_code in NOT_IN_THE_TABLE:
        phrase = phrase_of(HTTPStatus(error.status_code))
        error = NoSuchRoute(f"{request.method} on this path: {phrase}")
    elif isinstance(error, HTTPException):
        error = InvalidRequest("the request cannot be read")
    elif not isinstance(error, SignerdError):
        error = DaemonFailed(UNFORESEEN)
    return JSONResponse(problem(error), error.http_status, headers_of(error), CONTENT_TYPE)
