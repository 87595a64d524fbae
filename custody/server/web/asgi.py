"""The ASGI application: the table's routes, readiness, and what surrounds them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from custody.schemas.errors import PROBLEM_CONTENT_TYPE
from custody.server.domain.errors import CustodyError
from custody.server.domain.ports import RandomBytes
from custody.server.service.services import Services
from custody.server.web import problems
from custody.server.web.document import make_bounds_whole
from custody.server.web.health import health, readiness
from custody.server.web.measuring import Measure
from custody.server.web.middleware import BodyLimit, Trace
from custody.server.web.routes import build_router
from custody.server.web.table import ENDPOINTS

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def _nothing_else(_app: FastAPI) -> AsyncIterator[None]:
    yield


def build_asgi(
    services: Services, random: RandomBytes, *, version: str, lifespan: Lifespan = _nothing_else
) -> FastAPI:
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
    # Not include_router: it would make every route again, at the first request.
    app.router.routes.extend(_router().routes)
    app.add_route("/health", health, include_in_schema=False)
    app.add_route("/ready", readiness(services), include_in_schema=False)
    app.add_middleware(
        BodyLimit, psbt_paths=frozenset(endpoint.path for endpoint in ENDPOINTS if endpoint.carries_psbt)
    )
    app.add_middleware(Measure, meters=services.store.meters)
    app.add_middleware(Trace, random=random)
    return app


@cache
def _router() -> APIRouter:
    """Once for each process: making the models of every route takes longer than opening a database."""
    return build_router(ENDPOINTS)


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """The framework documents every answer as plain JSON; refusals have a media type of their own (RFC 9457)."""
        document = super().openapi()
        make_bounds_whole(document)
        for path in document["paths"].values():
            for operation in path.values():
                content = operation["responses"]["default"]["content"]
                if "application/json" in content:
                    content[PROBLEM_CONTENT_TYPE] = content.pop("application/json")
        return document
