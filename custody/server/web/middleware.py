"""What surrounds every request: its trace id, one line in the log, its measures, the bound on its body, and careful headers."""

import time
from typing import Final
from uuid import UUID

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from custody.schemas.common import MAX_PSBT_BASE64
from custody.schemas.errors import ErrorCode
from custody.server.domain.ports import RandomBytes
from custody.server.meters import Meters
from custody.server.web.problems import problem

# Ids, words, and a hundred recipients. FastAPI parses a body on the event loop, and anybody may send one to sign in: three
# megabytes of unknown fields take most of a second, in which no other request is answered.
MAX_BODY_BYTES = 128 * 1024
# Where a signed PSBT travels.
MAX_PSBT_BODY_BYTES = MAX_PSBT_BASE64 + 64 * 1024
CONTENT_TOO_LARGE = 413
# Leading zeros included: nobody writes so many.
MAX_LENGTH_DIGITS = 20
# Outside the table of endpoints.
PLAIN_ROUTES: Final = frozenset({"/health", "/ready", "/openapi.json"})
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNKNOWN: Final = "other"

log = structlog.get_logger()


class Trace:
    """A trace id for each request, in its log lines, errors and audit entries alike. Our own: a caller's is not taken."""

    def __init__(self, app: ASGIApp, random: RandomBytes) -> None:
        self._app = app
        self._random = random

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = str(UUID(bytes=self._random(16)))
        scope.setdefault("state", {})["trace_id"] = trace_id
        status = 0
        started = time.perf_counter()

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _mark(MutableHeaders(scope=message), trace_id)
            await send(message)

        with structlog.contextvars.bound_contextvars(trace_id=trace_id):
            try:
                await self._app(scope, receive, send_marked)
            finally:
                # The path alone: a query may hold what is nobody's business (P49).
                milliseconds = round((time.perf_counter() - started) * 1000, 1)
                log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    milliseconds=milliseconds,
                )


def _mark(headers: MutableHeaders, trace_id: str) -> None:
    headers["X-Trace-Id"] = trace_id
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Cache-Control", "no-store")


class Measure:
    """Counts and times every request by the route that answered it, never by its path, which may hold anything."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # What crashes is answered further out.
        status, started = 500, time.perf_counter()

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._meters.in_flight.track_inprogress():
            try:
                await self._app(scope, receive, send_seen)
            finally:
                self._count(scope, status, time.perf_counter() - started)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route, method = _route(scope), scope["method"] if scope["method"] in METHODS else UNKNOWN
        self._meters.requests.labels(route, method, str(status)).inc()
        # For how long somebody liked to wait says nothing of how fast we are.
        if "wait" not in Headers(scope=scope).get("prefer", ""):
            self._meters.request_seconds.labels(route, method).observe(seconds)


def _route(scope: Scope) -> str:
    """As the table writes it, with the names of the ids in their places."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        path = scope["path"] if scope["path"] in PLAIN_ROUTES else UNKNOWN
    return str(path)


class BodyLimit:
    """Refuses a body that is announced too large, and stops reading one that becomes so.

    ``psbt_paths``: where a PSBT may come.
    """

    def __init__(self, app: ASGIApp, psbt_paths: frozenset[str]) -> None:
        self._app = app
        self._psbt_paths = psbt_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        max_bytes = MAX_PSBT_BODY_BYTES if scope["path"] in self._psbt_paths else MAX_BODY_BYTES
        if _announces_more(Headers(scope=scope).get("content-length", "0"), max_bytes):
            await _refuse(scope, receive, send)
            return
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise HTTPException(CONTENT_TOO_LARGE)
            return message

        await self._app(scope, receive_bounded, send)


def _announces_more(length: str, max_bytes: int) -> bool:
    """By its digits first: Python refuses to read a number of thousands of them."""
    return length.isdecimal() and (len(length) > MAX_LENGTH_DIGITS or int(length) > max_bytes)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    answer = problem(Request(scope), ErrorCode.BODY_TOO_LARGE, "The body is too large.")
    # What is left of it is not read: the connection cannot be used again.
    answer.headers["Connection"] = "close"
    await answer(scope, receive, send)
