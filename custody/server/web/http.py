"""What is read of a request, and the headers of a list in pages."""

from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel
from starlette.requests import Request

from custody.schemas.call import Page
from custody.server.service.services import Services


def page_headers(path: str, query: BaseModel, page: Page[Any], key: str) -> dict[str, str]:
    """How many there are, and where the next page begins (RFC 8288)."""
    headers = {"X-Total-Count": str(page.total)}
    if not page.is_total_exact:
        headers["X-Total-Count-Is"] = "at-least"
    if (after := page.following(key)) is not None:
        values = query.model_dump(mode="json", exclude_none=True) | {"after": after}
        headers["Link"] = f'<{path}?{urlencode(values)}>; rel="next"'
    return headers


def address_of(request: Request) -> str:
    """The client's address; behind a trusted proxy, the one that it reports."""
    return request.client.host if request.client else "local"


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services
