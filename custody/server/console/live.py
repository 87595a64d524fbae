"""Long polling by the open pages of a workspace, until something in it changes (ADR 18)."""

from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from custody.pages.headers import HEADERS
from custody.server.console import session
from custody.server.console.table import record_path
from custody.server.console.visit import number_of
from custody.server.domain.errors import CustodyError, Unauthenticated
from custody.server.service.requests.changes import read_revision
from custody.server.service.services import Services
from custody.server.web.endpoint import services_of
from custody.server.web.problems import STATUS, trace_id_of

WAIT_SECONDS = 25.0


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
        return Response(None, STATUS[error.code].value, HEADERS)
    return JSONResponse(
        {"revision": await run_in_threadpool(_revision, services, workspace_id)}, headers=HEADERS
    )


def _enter(services: Services, request: Request, workspace_id: int) -> int:
    """The person's id. Raises Unauthenticated, and NotFound where they are no member."""
    held = session.Held.read(request)
    if held is None:
        raise Unauthenticated("Sign in first.")
    caller = services.sessions.authenticate(held.access, trace_id_of(request))
    with services.store.read() as db:
        services.people.enter(db, caller, workspace_id, frozenset())
    return caller.counted_as


def _revision(services: Services, workspace_id: int) -> int:
    with services.store.read() as db:
        return read_revision(db, workspace_id)


ROUTE = Route(record_path("/w/{workspace_id:int}/changed"), wait, methods=["GET"])
