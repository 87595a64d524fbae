"""What a process without requests shows of itself: that it lives, and that it reaches its database."""

from starlette.applications import Starlette
from starlette.routing import Route

from custody.server.service.services import Services
from custody.server.web.asgi import Lifespan
from custody.server.web.health import health, readiness


def build_worker_asgi(services: Services, lifespan: Lifespan) -> Starlette:
    """``lifespan`` runs the workers beside it."""
    return Starlette(
        routes=[Route("/health", health), Route("/ready", readiness(services))],
        lifespan=lifespan,
    )
