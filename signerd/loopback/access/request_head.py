"""A request's head, as a gate reads it: what stands there twice is refused where one answer counts."""

from dataclasses import dataclass
from typing import Self

from starlette.types import Scope

from signerd.endpoint import ENTER, EVENTS
from signerd.errors import InvalidRequest, NotPaired

SAFE_METHODS = frozenset({"GET", "HEAD"})
_SCHEME = "bearer"
# Where the guard writes down who asks, and by which session of the page, in the connection's scope.
SCOPE_KEY = "signerd.caller"
SESSION_KEY = "signerd.session"


@dataclass(frozen=True, repr=False)
class RequestHead:
    """``headers``: names in small letters, in the order in which they came. Has secrets in it, and so no repr."""

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
        """Raises InvalidRequest where it stands there twice: two readers could take two answers from it."""
        found = self.all(name)
        if len(found) > 1:
            raise InvalidRequest(f"the header '{name}' stands there more than once")
        return found[0] if found else None

    def token(self) -> str | None:
        """Of an app. Raises InvalidRequest; NotPaired for credentials of another kind."""
        given = self.sole("authorization")
        if given is None:
            return None
        scheme, _space, token = given.partition(" ")
        if scheme.lower() != _SCHEME or not token.strip():
            raise NotPaired("the only credentials here are 'Authorization: Bearer' with an app's token")
        return token.strip()

    @property
    def is_safe(self) -> bool:
        """It changes nothing (RFC 9110, section 9.2.1)."""
        return self.method in SAFE_METHODS

    @property
    def is_by_itself(self) -> bool:
        """Our page's script asks for what may have changed, and nobody need be there: htmx gets its parts so, and the events come so."""
        return self.method == "GET" and (self.path == EVENTS or self.first("hx-request") is not None)

    @property
    def is_preflight(self) -> bool:
        return self.method == "OPTIONS" and self.first("access-control-request-method") is not None

    @property
    def enters(self) -> bool:
        return self.method == "POST" and self.path == ENTER
