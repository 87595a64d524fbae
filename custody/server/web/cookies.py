"""The cookie that renews a session of the API's."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from custody.schemas.auth import REFRESH_COOKIE
from custody.server.rules.credentials import REFRESH_LIFETIME

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
PATH: Final = "/auth"


def set_refresh_token(request: Request, response: Response, token: str) -> None:
    response.set_cookie(
        REFRESH_COOKIE,
        token,
        max_age=int(REFRESH_LIFETIME.total_seconds()),
        path=PATH,
        httponly=True,
        samesite="strict",
        secure=is_secure(request),
    )


def delete_refresh_token(request: Request, response: Response) -> None:
    response.delete_cookie(
        REFRESH_COOKIE, path=PATH, httponly=True, samesite="strict", secure=is_secure(request)
    )


def is_secure(request: Request) -> bool:
    """True except on loopback http without a proxy, where a browser would never return a Secure cookie."""
    if request.app.state.behind_proxy:
        return True
    return not (request.url.scheme == "http" and request.url.hostname in LOOPBACK)
