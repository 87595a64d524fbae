"""What is read of a request, the headers of a list in pages, and cookies."""

import json
from datetime import timedelta
from typing import Any, Final, Literal
from urllib.parse import urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from custody.schemas.call import Page
from custody.server.calls import EncodedAnswer, Invocation, Watched
from custody.server.services import Services

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
NO_TIME: Final = timedelta()


def page_headers(invocation: Invocation, answered: EncodedAnswer) -> dict[str, str]:
    """Of a list in pages: how many there are, and where the next page begins (RFC 8288)."""
    value = answered.value
    page = value.answer if isinstance(value, Watched) else value
    if not isinstance(page, Page):
        return {}
    headers = {"X-Total-Count": str(page.total)}
    if not page.is_total_exact:
        headers["X-Total-Count-Is"] = "at-least"
    if (after := page.following(invocation.call.key)) is not None:
        values = invocation.request.model_dump(mode="json", exclude_none=True) | {"after": after}
        headers["Link"] = f'<{invocation.path}?{urlencode(values)}>; rel="next"'
    return headers


def address_of(request: Request) -> str:
    """The client's address; behind a trusted proxy, the one that it reports."""
    return request.client.host if request.client else "local"


# Longer than any honest length, even with leading zeros.
MAX_LENGTH_DIGITS = 20


def announces_more(headers: Headers, max_bytes: int) -> bool:
    """Counts digits first: Python refuses to parse a number of thousands of digits."""
    length = headers.get("content-length", "0")
    return length.isdecimal() and (len(length) > MAX_LENGTH_DIGITS or int(length) > max_bytes)


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
            raise UnclearJson("The body is not UTF-8, or it is compressed.") from None
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


def set_cookie(
    request: Request,
    response: Response,
    name: str,
    value: str = "",
    lifetime: timedelta = NO_TIME,
    *,
    path: str = "/",
    same_site: Literal["lax", "strict"] = "strict",
) -> None:
    """Of no lifetime: the browser deletes it. ``lax``: it also sends it when another site links here, as an
    identity provider does.
    """
    response.set_cookie(
        cookie_name(request, name) if path == "/" else name,
        value,
        max_age=int(lifetime.total_seconds()),
        path=path,
        httponly=True,
        samesite=same_site,
        secure=is_secure(request),
    )


def cookie_name(request: Request, name: str) -> str:
    """Of one for every path. `__Host-`: no other host of the domain can set it (RFC 6265bis, section
    4.1.3.2). It needs https.
    """
    return f"__Host-custody-{name}" if is_secure(request) else f"custody-{name}"


def is_secure(request: Request) -> bool:
    """True except on loopback http without a proxy, where a browser would never return a Secure cookie."""
    if request.app.state.behind_proxy:
        return True
    return not (request.url.scheme == "http" and request.url.hostname in LOOPBACK)
