"""The request headers that access control reads, and the headers of every answer: no caching, no sniffing,
and no other site reads it unless the person let that site in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from custody.common.pages.serving import NO_PERMISSIONS, POLICY
from signerd.endpoint import ENTER, EVENTS
from signerd.errors import InvalidRequest, NotPaired

# RFC 9110, section 9.2.1.
SAFE_METHODS = frozenset({"GET", "HEAD"})
_SCHEME = "bearer"
# Keys of the ASGI scope under which the guard stores the caller and its page session.
SCOPE_KEY = "signerd.caller"
SESSION_KEY = "signerd.session"


@dataclass(frozen=True, repr=False)
class RequestHead:
    """``headers``: in the order received, names in lower case. It holds secrets, and so has no repr."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, scope: Scope) -> Self:
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        return cls(scope["method"], scope["path"], headers)

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(value for given, value in self.headers if given == name)

    def first(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)

    def sole(self, name: str) -> str | None:
        """Raises InvalidRequest where the header is repeated: two readers could each take another value."""
        values = self.all(name)
        if len(values) > 1:
            raise InvalidRequest(f"the header '{name}' stands there more than once")
        return values[0] if values else None

    def token(self) -> str | None:
        """An app's bearer token. Raises InvalidRequest; NotPaired for credentials of another kind."""
        given = self.sole("authorization")
        if given is None:
            return None
        scheme, _space, token = given.partition(" ")
        if scheme.lower() != _SCHEME or not token.strip():
            raise NotPaired("the only credentials here are 'Authorization: Bearer' with an app's token")
        return token.strip()

    @property
    def is_by_itself(self) -> bool:
        """The page's script polls for changes, with or without a person there: htmx fetches parts this way,
        and the event stream is read this way.
        """
        return self.method == "GET" and (self.path == EVENTS or self.first("hx-request") is not None)

    @property
    def is_preflight(self) -> bool:
        return self.method == "OPTIONS" and self.first("access-control-request-method") is not None

    @property
    def enters(self) -> bool:
        return self.method == "POST" and self.path == ENTER


# For what is no HTML: it runs no script and is framed by no page.
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
# The methods of the table's routes, for which a browser sends a preflight request.
ALLOWED_METHODS = "GET, POST, PUT, DELETE"
ALLOWED_HEADERS = "Authorization, Content-Type, Last-Event-ID"
READABLE_HEADERS = "Retry-After"
# Ten minutes. The request after the preflight is checked itself, so a cached answer admits no revoked site.
PREFLIGHT_SECONDS = 600
_ASKS_PRIVATE = "access-control-request-private-network"


def always() -> bool:
    return True


def guarded(send: Send, reader: str | None, stands: Callable[[], bool] = always) -> Send:
    """``reader``: the foreign origin that may read the answer. ``stands``: asked before each part of a
    streamed answer, which ends where it is false (L13).
    """
    over = False

    async def sending(message: Message) -> None:
        nonlocal over
        if message["type"] == "http.response.start":
            _complete(MutableHeaders(scope=message), reader)
        elif over:
            return
        # An answer in one part was checked at admission; a stream's first part may come hours later.
        elif message.get("more_body", False) and not stands():
            over, message = True, {"type": "http.response.body", "body": b""}
        await send(message)

    return sending


def _complete(headers: MutableHeaders, reader: str | None) -> None:
    kind = headers.get("content-type", "")
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Cache-Control", "no-store")
    headers.setdefault("Referrer-Policy", "no-referrer")
    policy = POLICY if kind.startswith("text/html") else DATA_POLICY
    headers.setdefault("Content-Security-Policy", policy)
    headers.setdefault("Permissions-Policy", NO_PERMISSIONS)
    headers["Cross-Origin-Resource-Policy"] = "same-origin" if reader is None else "cross-origin"
    if reader is not None:
        headers["Access-Control-Allow-Origin"] = reader
        headers["Access-Control-Expose-Headers"] = READABLE_HEADERS
        headers.add_vary_header("Origin")


def preflight(head: RequestHead) -> Response:
    """What a site that was let in may send (Fetch, section 3.2; L14: Private Network Access, section 3.2)."""
    headers = {
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    if head.first(_ASKS_PRIVATE) == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=headers)
