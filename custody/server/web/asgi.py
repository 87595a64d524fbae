"""The ASGI applications: of a process that answers requests, and of one that only works, of which health and readiness are shown."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from custody.server.domain.errors import CustodyError
from custody.server.domain.ports import RandomBytes
from custody.server.service.services import Services
from custody.server.web import problems
from custody.server.web.document import completed
from custody.server.web.middleware import BodyLimit, Measure, Trace
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
    app.add_route("/health", _health, include_in_schema=False)
    app.add_route("/ready", _readiness(services), include_in_schema=False)
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


def build_worker_asgi(services: Services, lifespan: Lifespan) -> Starlette:
    """Of a process without requests. ``lifespan`` runs the workers beside it."""
    return Starlette(
        routes=[Route("/health", _health), Route("/ready", _readiness(services))],
        lifespan=lifespan,
    )


async def _health(_request: Request) -> Response:
    """For the machines around a process: it lives."""
    return JSONResponse({"status": "ok"})


def _readiness(services: Services) -> Callable[[Request], Awaitable[Response]]:
    """Whether work may be sent to the process."""

    async def ready(_request: Request) -> Response:
        """503 with the reason where it is not. Open to everybody: no address, no name and no error of another program's."""
        found = await services.readiness.ask()
        chains = [asdict(chain) for chain in found.chains]
        if found.trouble is None:
            return JSONResponse({"status": "ready", "chains": chains})
        return JSONResponse(
            {"status": "not ready", "reason": found.trouble, "chains": chains},
            HTTPStatus.SERVICE_UNAVAILABLE,
            {"Retry-After": str(problems.DEFAULT_RETRY_SECONDS)},
        )

    return ready


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return completed(super().openapi())
