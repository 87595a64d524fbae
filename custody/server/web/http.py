"""What is read of a request, and the headers of a list in pages."""

import json
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel
from starlette.requests import Request

from custody.schemas.call import Page
from custody.server.services import Services


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


class UnclearJson(json.JSONDecodeError):
    """JSON that two readers may read differently."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, "", 0)


class JsonRequest(Request):
    """A request whose body means one thing: UTF-8, no name twice, no number with an exponent (RFC 8259, 4, 6
    and 8.1).
    """

    async def json(self) -> Any:
        try:
            text = (await self.body()).decode()
        except UnicodeDecodeError:
            raise UnclearJson("The body is not UTF-8.") from None
        return json.loads(text, object_pairs_hook=_named_once, parse_float=_plain, parse_constant=_plain)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise UnclearJson("An object of the body has a name twice.")
    return named


def _plain(number: str) -> float:
    if set(number) - set("-0123456789."):
        raise UnclearJson("A number of the body is not in plain digits.")
    return float(number)
