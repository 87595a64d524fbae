"""Entering and leaving the page, and its mount."""

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.types import Scope

from custody.common.pages.rendering import Fields
from signerd.callers import STRANGER, CallerKind, LoopbackCaller
from signerd.endpoint import ENTER, LEAVE, is_of_api
from signerd.errors import EntryRefused, InvalidRequest, NoSuchRoute, NotPaired, RequestTooLarge
from signerd.loopback.access.headers import SCOPE_KEY, SESSION_KEY
from signerd.loopback.access.sessions import PageSessions
from signerd.loopback.page import rendering
from signerd.problems import problem
from signerd.shapes import PageEntry

# The feed's subject of the note that a browser entered.
SUBJECT = "page"
ENTERED = "The page was entered."
# One field with a code of eleven letters.
MAX_FORM_BYTES = 1024
MAX_FIELDS = 4

# Its script stores the secret for this origin, which includes the port, and replaces this document by the
# page.
ONWARD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>signerd</title>
<script src="/static/enter.js" defer></script></head>
<body data-session="{secret}"><p>Where this does not go on to the page, this browser runs no scripts or keeps
no data for it: allow both for this address, and run <code>signerd open</code> again.</p></body></html>
"""

# Submits itself by a script, or by its button.
FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<title>signerd</title></head>
<body><form method="post" action="{action}">
<input type="hidden" name="code" value="{code}">
<button type="submit">Open the page of signerd</button>
</form><script>document.forms[0].submit()</script></body></html>
"""


def entry_form(entry: PageEntry) -> str:
    """A document of no origin (a local file, a sandbox) that enters the page."""
    return FORM.format(action=escape(f"{entry.url}enter"), code=escape(entry.code))


async def enter(request: Request) -> Response:
    """For a stranger on the port; the private socket has no browsers. Raises NoSuchRoute, RequestTooLarge,
    InvalidRequest.
    """
    if request.app.state.service.page_address.port is None or _kind(request) is not CallerKind.STRANGER:
        raise NoSuchRoute("the page is entered in a browser")
    try:
        secret = _sessions(request).enter(await _code(request))
    except EntryRefused as error:
        # With the form, so that a mistyped code can be typed again.
        return rendering.answer(rendering.render("enter.html", problem=problem(error)), error.http_status)
    request.app.state.service.feed.add(SUBJECT, "info", ENTERED)
    return HTMLResponse(ONWARD.format(secret=secret))


async def leave(request: Request) -> Response:
    """Raises NotPaired for a browser without a session."""
    session = request.scope.get(SESSION_KEY)
    if _kind(request) is not CallerKind.PAGE or session is None:
        raise NotPaired("there is no session of the page to leave")
    _sessions(request).leave(session)
    # htmx loads "/", whose script forgets the secret once it is refused.
    return Response(headers={"HX-Redirect": "/"})


def _kind(request: Request) -> CallerKind:
    caller: LoopbackCaller = request.scope.get(SCOPE_KEY, STRANGER)
    return caller.kind


def _sessions(request: Request) -> PageSessions:
    sessions: PageSessions = request.app.state.sessions
    return sessions


async def _code(request: Request) -> str:
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise RequestTooLarge(f"this form has {MAX_FORM_BYTES} bytes at most")
    try:
        return Fields.read(request.headers.get("content-type", ""), body, MAX_FIELDS).one("code")
    except ValueError:
        raise InvalidRequest("body: send it as a form") from None


ROUTES = (Route(ENTER, enter, methods=["POST"]), Route(LEAVE, leave, methods=["POST"]))


_PROGRAMS = frozenset({CallerKind.TERMINAL, CallerKind.APP})


class PageMount(Mount):
    """The last route of the table. Programs never match it, nor does any path of the API under ``/v1``."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        caller: LoopbackCaller = scope.get(SCOPE_KEY, STRANGER)
        if caller.kind in _PROGRAMS or is_of_api(scope["path"]):
            return Match.NONE, {}
        return super().matches(scope)
