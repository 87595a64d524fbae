"""The page's application over its table: who may not see it is told how to enter, an error stands where it
happened.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from custody.pages.headers import CAMERA_PERMISSION
from signerd.callers import Caller, Kind, Right
from signerd.daemon.service import Daemon
from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute, NotPaired, SignerdError
from signerd.loopback.page import (
    airgap,
    airgap_keys,
    devices,
    home,
    proposals,
    rendering,
    scanning,
    settings,
    setup,
    vaults,
)
from signerd.loopback.page.rendering import PageRequest, Row, problem_answer

ROWS: tuple[Row, ...] = (
    *home.ROWS,
    *setup.ROWS,
    *proposals.ROWS,
    *airgap.ROWS,
    *airgap_keys.ROWS,
    *scanning.ROWS,
    *devices.ROWS,
    *vaults.ROWS,
    *vaults.ADDRESS_ROWS,
    *home.TELLING_ROWS,
    *settings.APP_ROWS,
    *settings.ROWS,
    *rendering.ASSET_ROWS,
)

_NOT_IN_THE_TABLE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_Handler = Callable[[Request, Exception], Awaitable[Response]]


def make_page(service: Daemon) -> Starlette:
    page = Starlette(
        routes=[_route(row, service) for row in ROWS],
        exception_handlers={
            HTTPException: _not_served(service),
            Exception: _unknown(service),
        },
    )
    page.router.redirect_slashes = False
    page.state.scans = scanning.Scans()
    return page


def _route(row: Row, service: Daemon) -> Route:
    async def call(request: Request) -> Response:
        asked = PageRequest(request, service)
        try:
            _let_in(asked.caller, row.needs)
            response = await row.endpoint(asked)
        except SignerdError as error:
            response = await problem_answer(asked, error)
        if row.camera:
            # Of the answer to a stranger too: that one's document is the page's, once the script has asked
            # again with the session.
            response.headers["Permissions-Policy"] = CAMERA_PERMISSION
        return response

    made = Route(row.path, call, methods=[row.method])
    # Starlette adds HEAD to every GET; the table does not have it.
    made.methods = {row.method}
    return made


def _let_in(caller: Caller, needs: Right) -> None:
    """A page is for a browser: a terminal has commands of its own, and needs no session."""
    if needs is not Right.ANYONE and caller.kind is not Kind.PAGE:
        raise NotPaired("this page is open to the person at this machine alone")
    caller.require(needs)


def _not_served(service: Daemon) -> _Handler:
    async def handle(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        asked = PageRequest(request, service)
        if asked.caller.kind is not Kind.PAGE:
            # A window that goes to an address sends no session: the page asks again with it, and is told
            # then.
            told: SignerdError = NotPaired("this page is open to the person at this machine alone")
        elif error.status_code in _NOT_IN_THE_TABLE:
            told = NoSuchRoute("there is no such page", hint="Go back to the proposals.")
        else:
            told = InvalidRequest("the request cannot be read", hint="Load the page again.")
        return await problem_answer(asked, told)

    return handle


def _unknown(service: Daemon) -> _Handler:
    """A bug. Starlette raises it again after this answer, so that the log has it whole."""

    async def handle(request: Request, _error: Exception) -> Response:
        bug = DaemonFailed("the daemon met an error that it has no name for")
        return await problem_answer(PageRequest(request, service), bug)

    return handle
