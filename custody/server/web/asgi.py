"""The ASGI applications, of a server and of a worker process, and the middleware around every request."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from custody.schemas.calls import CALLS
from custody.schemas.common import MAX_PSBT_BASE64
from custody.schemas.errors import ErrorCode
from custody.server.errors import CustodyError
from custody.server.meters import Meters
from custody.server.rules.ports import RandomBytes
from custody.server.services import Services
from custody.server.web import problems
from custody.server.web.http import announces_more, services_of
from custody.server.web.long_poll import wait_seconds
from custody.server.web.problems import problem
from custody.server.web.routes import build_router, completed

log = structlog.get_logger()
# Enough for a hundred recipients. FastAPI parses bodies on the event loop, and anyone may call sign-in: three
# megabytes of unknown fields would block all other requests for most of a second.
MAX_BODY_BYTES = 128 * 1024
# For endpoints that take a signed PSBT.
MAX_PSBT_BODY_BYTES = MAX_PSBT_BASE64 + 64 * 1024
# Outside the table of endpoints.
PLAIN_ROUTES: Final = frozenset({"/health", "/ready", "/openapi.json"})
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNKNOWN: Final = "other"

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


class Trace:
    """Gives each request a trace id of its own, for log lines, errors and audit entries; logs it, counts it
    and times it, by its route and not by its path, which could be anything.
    """

    def __init__(self, app: ASGIApp, random: RandomBytes, meters: Meters) -> None:
        self._app = app
        self._random = random
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = str(UUID(bytes=self._random(16)))
        scope.setdefault("state", {})["trace_id"] = trace_id
        request_headers = Headers(scope=scope)
        # An outer middleware answers a crash.
        status, started = 500, time.perf_counter()

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Trace-Id"] = trace_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
                if "transfer-encoding" in request_headers and "content-length" in request_headers:
                    # A proxy may have seen another end of this request (RFC 9112, section 6.1).
                    headers["Connection"] = "close"
            await send(message)

        with structlog.contextvars.bound_contextvars(trace_id=trace_id):
            try:
                with self._meters.in_flight.track_inprogress():
                    await self._app(scope, receive, send_marked)
            finally:
                seconds = time.perf_counter() - started
                self._count(scope, status, seconds)
                # Without the query, which may contain private data (P49).
                log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    milliseconds=round(seconds * 1000, 1),
                )

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        path, method = scope["path"], scope["method"] if scope["method"] in METHODS else UNKNOWN
        # The endpoint's path template.
        route = getattr(scope.get("route"), "path", path if path in PLAIN_ROUTES else UNKNOWN)
        self._meters.requests.labels(route, method, str(status)).inc()
        # A long poll's duration is the caller's choice.
        if not wait_seconds(Headers(scope=scope)):
            self._meters.request_seconds.labels(route, method).observe(seconds)


class BodyLimit:
    """Refuses a body whose announced length is too large, and stops reading one that gets too large.
    ``psbt_paths``: the paths that accept a PSBT.
    """

    def __init__(self, app: ASGIApp, psbt_paths: frozenset[str]) -> None:
        self._app = app
        self._psbt_paths = psbt_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        max_bytes = MAX_PSBT_BODY_BYTES if scope["path"] in self._psbt_paths else MAX_BODY_BYTES
        is_more = announces_more(Headers(scope=scope), max_bytes)
        if is_more and not scope["path"].startswith("/console/"):
            refused = problem(Request(scope), ErrorCode.BODY_TOO_LARGE, "The body is too large.")
            # The rest of the body is not read, so the connection cannot be used again.
            refused.headers["Connection"] = "close"
            await refused(scope, receive, send)
            return
        # The console refuses on a page, where it begins to read.
        received = max_bytes if is_more else 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self._app(scope, receive_bounded, send)


def build_asgi(services: Services, random: RandomBytes, *, version: str, lifespan: Lifespan) -> FastAPI:
    """``lifespan`` runs the workers beside the requests."""
    app = _Application(
        title="Custody platform",
        summary="Multi-signature custody: proposals, approvals by hardware devices, broadcast.",
        version=version,
        lifespan=lifespan,
        # The interactive pages load scripts from elsewhere; the document itself is served.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={
            CustodyError: problems.on_custody_error,
            RequestValidationError: problems.on_invalid_request,
            HTTPException: problems.on_http_error,
            Exception: problems.on_crash,
        },
    )
    app.state.services = services
    # Where the operator sets this, every cookie is Secure, whatever headers the proxy sends.
    app.state.behind_proxy = False
    # Not include_router, which would create every route again.
    app.router.routes.extend((*build_router().routes, *_PLAIN))
    app.add_middleware(BodyLimit, psbt_paths=frozenset(call.path for call in CALLS if call.carries_psbt))
    app.add_middleware(Trace, random=random, meters=services.store.meters)
    return app


def build_worker_asgi(services: Services, lifespan: Lifespan) -> Starlette:
    """For a process without requests. ``lifespan`` runs the workers beside it."""
    app = Starlette(routes=_PLAIN, lifespan=lifespan)
    app.state.services = services
    return app


async def _health(_request: Request) -> Response:
    """Liveness: the process runs."""
    return JSONResponse({"status": "ok"})


async def _ready(request: Request) -> Response:
    """Whether a proxy may send requests to the process: 503 with the reason where it is not. Anyone may call
    it, so it reveals no address, name or foreign error.
    """
    services = services_of(request)
    trouble, now = await services.readiness.trouble(), services.tools.clock()
    chains = [
        {
            "chain": chain,
            "reachable": reach.is_up,
            "height": None if reach.tip is None else reach.tip.height,
            "silent_seconds": None
            if reach.answered_at is None
            else max(0.0, (now - reach.answered_at).total_seconds()),
        }
        for chain, reach in services.tools.market.reached.items()
    ]
    if trouble is None:
        return JSONResponse({"status": "ready", "chains": chains})
    return JSONResponse(
        {"status": "not ready", "reason": trouble, "chains": chains},
        HTTPStatus.SERVICE_UNAVAILABLE,
        {"Retry-After": str(problems.DEFAULT_RETRY_SECONDS)},
    )


_PLAIN: Final = (Route("/health", _health), Route("/ready", _ready))


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return completed(super().openapi())
