"""The page's application: its routes, and the answers to a caller without a session and to errors."""

from collections.abc import Callable
from html import escape
from pathlib import Path
from shlex import quote

from platformdirs import user_state_path
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from custody.common.pages.serving import CAMERA_PERMISSION, HTML
from signerd.callers import STRANGER, CallerKind, LoopbackCaller, Right
from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute, NotPaired, SignerdError
from signerd.loopback.access.headers import SCOPE_KEY
from signerd.loopback.answers import Context
from signerd.loopback.binding import NOT_IN_THE_TABLE, UNFORESEEN, route
from signerd.loopback.page import airgap, devices, home, proposals, rendering, settings, setup, vaults
from signerd.loopback.page.rendering import PageRequest, PageRoute, problem_answer

ROWS: tuple[PageRoute, ...] = (
    *home.ROWS,
    *setup.ROWS,
    *proposals.ROWS,
    *airgap.ROWS,
    *devices.ROWS,
    *vaults.ROWS,
    *settings.ROWS,
    *rendering.ASSET_ROWS,
)


def make_page(to: Callable[[LoopbackCaller], Context]) -> Starlette:
    """``to``: what answers a caller."""

    async def failed(request: Request, error: Exception) -> Response:
        page_request = _asked(request, to)
        return await problem_answer(page_request, _explained(page_request, error))

    page = Starlette(
        routes=[_route(row, to) for row in ROWS],
        exception_handlers=dict.fromkeys((HTTPException, Exception), failed),
    )
    page.router.redirect_slashes = False
    page.state.scans = airgap.Scans()
    return page


def _asked(request: Request, to: Callable[[LoopbackCaller], Context]) -> PageRequest:
    return PageRequest(request, to(request.scope.get(SCOPE_KEY, STRANGER)))


def _route(row: PageRoute, to: Callable[[LoopbackCaller], Context]) -> Route:
    async def call(request: Request) -> Response:
        page_request = _asked(request, to)
        try:
            # The terminal has its own commands.
            if row.needs is not Right.ANYONE and page_request.to.caller.kind is not CallerKind.PAGE:
                raise NotPaired("only the person at this machine may open this page")
            page_request.to.caller.require(row.needs)
            response = await row.endpoint(page_request)
        except SignerdError as error:
            response = await problem_answer(page_request, error)
        if row.camera:
            # Also for a stranger: that document becomes the page's once its script has repeated the request
            # with the session.
            response.headers["Permissions-Policy"] = CAMERA_PERMISSION
        if page_request.to.caller.kind is CallerKind.PAGE and response.media_type == HTML:
            _as_called(response, page_request.service.state)
        return response

    return route(row.method, row.path, call)


def _as_called(response: Response, state: Path) -> None:
    """A command gets the folder of this daemon where it is not the desktop's own, as at a terminal."""
    if state != user_state_path("signerd"):
        called = f"<code>{escape(f'signerd --state {quote(str(state))}')} ".encode()
        response.body = bytes(response.body).replace(b"<code>signerd ", called)
        response.headers["content-length"] = str(len(response.body))


def _explained(request: PageRequest, error: Exception) -> SignerdError:
    """Starlette raises a bug again after the response, so that it is logged with its traceback."""
    if not isinstance(error, HTTPException):
        return DaemonFailed(UNFORESEEN)
    if request.to.caller.kind is not CallerKind.PAGE:
        # A navigation carries no session; the script repeats the request with it, and gets the 404 then.
        return NotPaired("only the person at this machine may open this page")
    if error.status_code in NOT_IN_THE_TABLE:
        return NoSuchRoute("there is no such page", hint="Go back to the proposals.")
    return InvalidRequest("the request cannot be read", hint="Load the page again.")
