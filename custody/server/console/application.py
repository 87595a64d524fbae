"""The console as one application below `/console`: its table of rows, its files, and the long poll of a
workspace's open pages, until something in it changes (ADR 18).
"""

from http import HTTPStatus
from importlib import import_module
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from custody.common.pages.serving import HEADERS, Assets
from custody.schemas.call import ANY_MEMBER
from custody.server.console.context import number_of
from custody.server.console.rendering import STATIC
from custody.server.console.session import BrowserSession
from custody.server.console.table import Row, on_error, route
from custody.server.errors import CustodyError, Unauthenticated
from custody.server.people.people import enter
from custody.server.requests.changes import read_revision
from custody.server.services import Services
from custody.server.sign_in.access_tokens import caller_of
from custody.server.web.http import address_of, services_of
from custody.server.web.problems import trace_id_of

ROOT = "/console"
_MODULES = (
    "sign_in", "home", "account", "members", "roles", "limits", "changes", "programs", "audit", "vaults",
    "vault_controls", "vault_replacement", "consolidating", "tokens", "proposing", "proposals", "addresses",
)  # fmt: skip
_ROWS_OF = (import_module(f"custody.server.console.{name}").ROWS for name in _MODULES)
ROWS: Final[tuple[Row, ...]] = tuple(each for rows in _ROWS_OF for row in rows for each in row.with_page())
# Of a long poll.
WAIT_SECONDS = 25.0
ASSETS = Assets(STATIC)


def console_routes(state: object) -> list[BaseRoute]:
    """``state``: the platform application's own, which the console shares."""
    inner = Starlette(
        routes=_ROUTES,
        exception_handlers=dict.fromkeys((CustodyError, HTTPException, Exception), on_error),
    )
    inner.state = state  # type: ignore[assignment]  # the same object, so that both see the same services
    inner.router.redirect_slashes = False
    return [
        Route("/", _to_console),
        Route(ROOT, _to_console),
        # The links of the platform's mails. A redirect keeps the fragment, which no server receives.
        Route("/reset-password", _to_console),
        Route("/invitations/{invite_id}", _to_console),
        Mount(ROOT, inner),
    ]


async def _to_console(request: Request) -> Response:
    path = request.url.path.removeprefix(ROOT).rstrip("/")
    return RedirectResponse(f"{ROOT}{path or '/'}", HTTPStatus.SEE_OTHER.value, HEADERS)


async def _asset(request: Request) -> Response:
    file = ASSETS.answer(request, request.path_params["name"], HEADERS)
    if file is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return file


async def wait(request: Request) -> Response:
    """204 where nothing changed in time; else the workspace's revision, which the page sends as the next
    ``after``. Without ``after`` it answers at once.

    An expired access token is not renewed here: loading the next part renews it.
    """
    services, workspace_id = services_of(request), request.path_params["workspace_id"]
    after = number_of(request.query_params.get("after", ""))
    seen = -1 if after is None else after
    try:
        user_id = await run_in_threadpool(_enter, services, request, workspace_id)
        with services.rates.long_poll(user_id, workspace_id):
            if seen >= 0 and not await services.following.wait(workspace_id, seen, WAIT_SECONDS):
                return Response(None, HTTPStatus.NO_CONTENT.value, HEADERS)
    except CustodyError as error:
        return Response(None, error.code.status.value, HEADERS)
    return JSONResponse(
        {"revision": await run_in_threadpool(_revision, services, workspace_id)}, headers=HEADERS
    )


def _enter(services: Services, request: Request, workspace_id: int) -> int:
    """The person's id. Raises Unauthenticated, and NotFound where they are no member."""
    held = BrowserSession.read(request)
    if held is None:
        raise Unauthenticated("Sign in first.")
    now = services.tools.clock()
    with services.store.read() as db:
        caller = caller_of(db, held.access, now, address_of(request), trace_id_of(request))
        enter(db, caller, workspace_id, ANY_MEMBER, now)
    return caller.counted_as


def _revision(services: Services, workspace_id: int) -> int:
    with services.store.read() as db:
        return read_revision(db, workspace_id)


_ROUTES: Final = (
    *map(route, ROWS),
    Route("/w/{workspace_id:int}/changed", wait, methods=["GET"]),
    Route("/static/{name}", _asset, methods=["GET"]),
)
