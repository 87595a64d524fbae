"""The page's application: its routes, and the answers to a caller without a session and to errors."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from custody.common.pages.serving import CAMERA_PERMISSION
from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.daemon.service import Daemon
from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute, NotPaired, SignerdError
from signerd.loopback.page import airgap, devices, home, proposals, rendering, settings, setup, vaults
from signerd.loopback.page.rendering import PageRequest, PageRoute, problem_answer

ROWS: tuple[PageRoute, ...] = (
    *home.ROWS,
    *setup.ROWS,
    *proposals.ROWS,
    *airgap.ROWS,
    *airgap.KEY_ROWS,
    *airgap.SCAN_ROWS,
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
    page.state.scans = airgap.Scans()
    return page


def _route(row: PageRoute, service: Daemon) -> Route:
    async def call(request: Request) -> Response:
        asked = PageRequest(request, service)
        try:
            _let_in(asked.caller, row.needs)
            response = await row.endpoint(asked)
        except SignerdError as error:
            response = await problem_answer(asked, error)
        if row.camera:
            # Also for a stranger: that document becomes the page's once its script has repeated the request
            # with the session.
            response.headers["Permissions-Policy"] = CAMERA_PERMISSION
        return response

    made = Route(row.path, call, methods=[row.method])
    # Starlette adds HEAD to every GET.
    made.methods = {row.method}
    return made


def _let_in(caller: LoopbackCaller, needs: Right) -> None:
    """Raises NotPaired for every caller but a page session, NotAllowed. The terminal has its own commands."""
    if needs is not Right.ANYONE and caller.kind is not CallerKind.PAGE:
        raise NotPaired("only the person at this machine may open this page")
    caller.require(needs)


def _not_served(service: Daemon) -> _Handler:
    async def handle(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        asked = PageRequest(request, service)
        if asked.caller.kind is not CallerKind.PAGE:
            # A navigation carries no session; the script repeats the request with it, and gets the 404 then.
            told: SignerdError = NotPaired("only the person at this machine may open this page")
        elif error.status_code in _NOT_IN_THE_TABLE:
            told = NoSuchRoute("there is no such page", hint="Go back to the proposals.")
        else:
            told = InvalidRequest("the request cannot be read", hint="Load the page again.")
        return await problem_answer(asked, told)

    return handle


def _unknown(service: Daemon) -> _Handler:
    """A bug. Starlette raises it again after this response, so that it is logged with its traceback."""

    async def handle(request: Request, _error: Exception) -> Response:
        bug = DaemonFailed("the daemon failed in an unforeseen way")
        return await problem_answer(PageRequest(request, service), bug)

    return handle
