"""For the machines around a process: that it lives (``/health``), and that work may be sent to it (``/ready``)."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from custody.server.service.services import Services
from custody.server.web.problems import DEFAULT_RETRY_SECONDS


async def health(_request: Request) -> Response:
    """The process answers."""
    return JSONResponse({"status": "ok"})


def readiness(services: Services) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_request: Request) -> Response:
        """503 with the reason where it is not. Open to everybody: no address, no name and no error of another program's."""
        found = await services.readiness.ask()
        chains = [asdict(chain) for chain in found.chains]
        if found.trouble is None:
            return JSONResponse({"status": "ready", "chains": chains})
        return JSONResponse(
            {"status": "not ready", "reason": found.trouble, "chains": chains},
            HTTPStatus.SERVICE_UNAVAILABLE,
            {"Retry-After": str(DEFAULT_RETRY_SECONDS)},
        )

    return ready
