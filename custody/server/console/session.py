"""A person's session in a browser: one cookie with the tokens of a sign-in, and the token of its forms.

The tokens of a sign-in are those of `/auth`: sessions are listed, ended and renewed in the same way.
"""

import hmac
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from custody.server import calls
from custody.server.errors import (
    NoRoleOpens,
    StateConflict,
    TokenExpired,
    Unauthenticated,
)
from custody.server.rules.credentials import Caller, anybody
from custody.server.services import Services
from custody.server.sign_in.access_tokens import caller_of
from custody.server.sign_in.sessions import renew_session
from custody.server.store.store import PageSnapshot
from custody.server.web.http import NO_TIME, address_of, cookie_name, is_secure, set_cookie
from custody.server.web.problems import trace_id_of

# A browser that was idle for this long asks for the password again.
IDLE: Final = timedelta(hours=12)
# Two tokens and a sid: a longer cookie is not ours.
_MAX_COOKIE: Final = 600
_SAID_LIFETIME: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class BrowserSession:
    """What the browser holds. ``sid`` names the family of tokens; it never leaves the cookie."""

    access: str = field(repr=False)
    sid: str = field(repr=False)
    refresh: str = field(repr=False)

    @classmethod
    def read(cls, request: Request) -> "BrowserSession | None":
        parts = cookie(request, "session").split(".")
        return cls(*parts) if len(parts) == 3 and all(parts) else None

    @property
    def form_token(self) -> str:
        """In every form of the session: another site can send a form but cannot know this."""
        return hmac.digest(self.sid.encode(), b"custody console form", "sha256").hex()

    def keep(self, request: Request, response: Response) -> None:
        value = f"{self.access}.{self.sid}.{self.refresh}"
        set_cookie(request, response, "session", value, IDLE)


def authenticate(
    services: Services, request: Request, held: BrowserSession, snapshot: PageSnapshot
) -> tuple[Caller, BrowserSession]:
    """The person, and the tokens to hold from now on: an expired access token is renewed. So is one that
    another tab of the browser has just renewed, since it is no longer known.

    Raises Unauthenticated, RateLimited.
    """
    address, trace_id = address_of(request), trace_id_of(request)

    def caller_with(access: str) -> Caller:
        with snapshot.reading() as db:
            return caller_of(db, access, services.tools.clock(), address, trace_id)

    try:
        return caller_with(held.access), held
    except (TokenExpired, Unauthenticated):
        # A renewal writes: each address may ask for so many.
        nobody = anybody(address, trace_id)
        calls.admit(services, nobody)
        tokens = calls.make_in_parts(
            services, nobody, renew_session(held.sid, held.refresh, IDLE, at_console=True)
        )
        return caller_with(tokens.token), BrowserSession(tokens.token, tokens.sid, tokens.refresh_token)


def require_own_site(request: Request) -> None:
    """Raises PermissionDenied for a form that another site sent."""
    own = f"{'https' if is_secure(request) else 'http'}://{request.headers.get('host', '')}"
    sent_by, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # A page without a referrer sends its own forms with the origin "null": then the browser has to name the
    # site.
    is_own = origin == own if sent_by is None else sent_by == "same-origin" and origin in {None, own, "null"}
    if not is_own:
        raise NoRoleOpens("The form was sent by another site, or by a browser that does not say which.")


def require_own_form(held: BrowserSession, form_token: str) -> None:
    """Raises StateConflict for a form of another session."""
    if not hmac.compare_digest(held.form_token.encode(), form_token.encode()):
        sentence = "This form is of an earlier session. Nothing was done."
        raise StateConflict(sentence, hint="Look at it, and send it again.")


def say(request: Request, response: Response, words: str) -> None:
    """One sentence for the next page: what was done. No words: it was shown."""
    set_cookie(request, response, "said", quote(words), _SAID_LIFETIME if words else NO_TIME)


def said(request: Request) -> str:
    return unquote(request.cookies.get(cookie_name(request, "said"), ""))


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(cookie_name(request, name), "")[:_MAX_COOKIE]
