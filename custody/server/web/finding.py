"""Finds the route of a request by its whole path, where the framework would try one pattern after the other: some hundred."""

from collections.abc import Sequence

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send


class Exact(BaseRoute):
    """Stands before the routes themselves, which answer what it does not find: numbers in the path, another method, nothing at all."""

    def __init__(self, routes: Sequence[APIRoute]) -> None:
        self._routes = {
            (method, route.path): route
            for route in routes
            if "{" not in route.path
            for method in route.methods or ()
        }

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope.get("root_path"):
            return Match.NONE, {}
        route = self._routes.get((scope["method"], scope["path"]))
        if route is None:
            return Match.NONE, {}
        return Match.FULL, {"endpoint": route.endpoint, "path_params": {}, "route": route}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["route"].handle(scope, receive, send)
