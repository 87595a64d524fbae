"""The console as one application below `/console`, over its table of rows."""

from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from custody.pages.assets import Assets
from custody.pages.headers import HEADERS
from custody.server.console import (
    account,
    address_import,
    addresses,
    advisories,
    audit,
    changes,
    evacuations,
    forwarding,
    home,
    identity,
    keys,
    limits,
    live,
    members,
    onboarding,
    programs,
    proofs,
    proposals,
    proposing,
    replacing,
    roles,
    sign_in,
    token_calls,
    tokens,
    vault_controls,
    vault_history,
    vaults,
    webhooks,
    workspace,
)
from custody.server.console.rendering import STATIC
from custody.server.console.table import Row, on_custody_error, on_http_error, route
from custody.server.domain.errors import CustodyError

ROOT = "/console"
ROWS: tuple[Row, ...] = (
    *sign_in.ROWS,
    *home.ROWS,
    *account.ROWS,
    *identity.ROWS,
    *members.ROWS,
    *roles.ROWS,
    *limits.ROWS,
    *workspace.ROWS,
    *changes.ROWS,
    *webhooks.ROWS,
    *programs.ROWS,
    *audit.ROWS,
    *onboarding.ROWS,
    *keys.ROWS,
    *vaults.ROWS,
    *vault_controls.ROWS,
    *evacuations.ROWS,
    *vault_history.ROWS,
    *tokens.ROWS,
    *token_calls.ROWS,
    *proposing.ROWS,
    *forwarding.ROWS,
    *replacing.ROWS,
    *proofs.ROWS,
    *proposals.ROWS,
    *address_import.ROWS,
    *addresses.ROWS,
    *advisories.ROWS,
)
ASSETS = Assets(STATIC, ("console.js",))


def console_routes(state: object) -> list[BaseRoute]:
    """``state``: the platform application's own, which the console shares."""
    inner = Starlette(
        routes=_ROUTES,
        exception_handlers={CustodyError: on_custody_error, HTTPException: on_http_error},
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
    found = ASSETS.answer(request, request.path_params["name"], HEADERS)
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return found


_ROUTES: Final = (*map(route, ROWS), live.ROUTE, Route("/static/{name}", _asset, methods=["GET"]))
