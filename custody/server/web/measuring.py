"""Counts and times every request by the route that answered it, never by its path, which may hold anything."""

import time
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from custody.server.meters import Meters

# Outside the table of endpoints.
PLAIN_ROUTES: Final = frozenset({"/health", "/ready", "/openapi.json"})
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNKNOWN: Final = "other"


class Measure:
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
