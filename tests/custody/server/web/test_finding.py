"""A route is found by its path: the right one, and as the framework would find it."""

import pytest
from starlette.routing import Match

from custody.server.web.endpoint import Endpoint
from custody.server.web.finding import Exact
from custody.server.web.routes import build_routes
from custody.server.web.table import ENDPOINTS

ROUTES = build_routes(ENDPOINTS)
EXACT = Exact(ROUTES)


def scope_of(method: str, path: str, **more: object) -> dict[str, object]:
    return {"type": "http", "method": method, "path": path, **more}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")
def test_finds_what_the_patterns_find(endpoint: Endpoint) -> None:
    scope = scope_of(endpoint.method, endpoint.path)
    by_patterns = next(route for route in ROUTES if route.matches(dict(scope))[0] is Match.FULL)
    match, found = EXACT.matches(scope)
    if endpoint.path_ids:
        assert match is Match.NONE
    else:
        assert match is Match.FULL
        assert found["route"] is by_patterns
        assert found["endpoint"] is by_patterns.endpoint


@pytest.mark.parametrize(
    "scope",
    [
        scope_of("PUT", "/api/v1/create-psbt"),
        scope_of("GET", "/api/v1/create-psbt"),
        scope_of("POST", "/api/v1/create-psbt/"),
        scope_of("POST", "/API/v1/create-psbt"),
        scope_of("POST", ""),
        scope_of("POST", "/below/api/v1/create-psbt", root_path="/below"),
        {"type": "websocket", "path": "/api/v1/create-psbt"},
        {"type": "lifespan"},
    ],
    ids=str,
)
def test_leaves_everything_else_to_them(scope: dict[str, object]) -> None:
    assert EXACT.matches(scope) == (Match.NONE, {})
