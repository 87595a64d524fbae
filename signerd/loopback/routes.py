"""The application over the table: each row behind what its caller must have been granted, each error as a problem."""

import json
from functools import cache
from http import HTTPStatus

from starlette import routing
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from signerd.callers import Right
from signerd.daemon.service import Daemon
from signerd.endpoint import PREFIX
from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute, SignerdError
from signerd.loopback.access.guard import Refused
from signerd.loopback.access.sessions import Sessions
from signerd.loopback.binding import JSON, Called, bind
from signerd.loopback.endpoints import ROUTES
from signerd.loopback.events import Streams
from signerd.loopback.page import entering
from signerd.loopback.page.mounting import PageMount
from signerd.problems import CONTENT_TYPE, headers_of, problem, status_of

_NOT_IN_THE_TABLE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


async def interface() -> Response:
    return Response(_described(), media_type=JSON)


@cache
def _described() -> bytes:
    """Made when a person who writes a program first asks, in some tenths of a second, and kept: anybody may ask again and again (L11)."""
    from signerd.loopback.description import describe

    return json.dumps(describe(ROUTES, PREFIX), separators=(",", ":")).encode()


def make_app(service: Daemon, streams: Streams, sessions: Sessions) -> Starlette:
    """The application over one daemon; an ``access.guard.Guard`` stands before it."""
    app = Starlette(
        routes=[
            *(_row(row.method, PREFIX + row.path, bind(row.endpoint, row.needs)) for row in ROUTES),
            _row("GET", f"{PREFIX}/openapi.json", bind(interface, Right.ANYONE)),
            *entering.ROUTES,
            PageMount(service),
        ],
        exception_handlers={
            SignerdError: _known,
            HTTPException: _not_served,
            Exception: _unknown,
        },
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.streams, app.state.sessions = service, streams, sessions
    app.state.refused = Refused()
    return app


def _row(method: str, path: str, endpoint: Called) -> routing.Route:
    row = routing.Route(path, endpoint, methods=[method])
    # Starlette adds HEAD to every GET; the table does not have it.
    row.methods = {method}
    return row


def _answer(error: SignerdError) -> JSONResponse:
    return JSONResponse(problem(error), status_of(error), headers_of(error), CONTENT_TYPE)


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, SignerdError)
    request.app.state.refused.count(error.code)
    return _answer(error)


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in _NOT_IN_THE_TABLE:
        return _answer(NoSuchRoute(f"{request.method} on this path: {HTTPStatus(error.status_code).phrase}"))
    return _answer(InvalidRequest("the request cannot be read"))


async def _unknown(_request: Request, _error: Exception) -> Response:
    """A bug. Starlette raises it again after this answer, so that the log has it whole."""
    return _answer(DaemonFailed("the daemon met an error that it has no name for"))
