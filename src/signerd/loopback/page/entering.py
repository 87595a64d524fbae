"""Entering the page and leaving it: a code that the private socket gave out becomes a cookie of this one browser (L4, L10)."""

from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from signerd.errors import EntryRefused, InvalidRequest, NoSuchRoute, NotPaired, RequestTooLarge
from signerd.loopback.access.gates import cookie_name
from signerd.loopback.callers import SCOPE_KEY, SESSION_KEY, STRANGER, Caller, Kind
from signerd.loopback.errors import problem, status_of
from signerd.loopback.page.sessions import Sessions
from signerd.loopback.place import ENTER, LEAVE

# Under this subject the feed says that somebody entered.
SUBJECT = "page"
ENTERED = "The page was entered."
FORM = "application/x-www-form-urlencoded"
# One field with a code of eleven letters.
MAX_FORM_BYTES = 1024
MAX_FIELDS = 4

# A browser does not send the new cookie along a redirect that another site's form began: our own page leads on.
ONWARD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>signerd</title><meta http-equiv="refresh" content="0; url=/"></head>
<body><p><a href="/">Go on to signerd</a></p></body></html>
"""


async def enter(request: Request) -> Response:
    """What the gate of the port lets through as a stranger; the private socket has no browsers. Raises NoSuchRoute, RequestTooLarge, InvalidRequest."""
    port = request.app.state.service.reach.port
    if port is None or _kind(request) is not Kind.STRANGER:
        raise NoSuchRoute("the page is entered in a browser")
    try:
        entered = _sessions(request).enter(await _code(request))
    except EntryRefused as error:
        return _refused(error)
    request.app.state.service.feed.add(SUBJECT, "info", ENTERED)
    return HTMLResponse(ONWARD, headers={"Set-Cookie": _cookie(port, entered.token)})


async def leave(request: Request) -> Response:
    """Raises NotPaired for whoever is not in."""
    port, session = request.app.state.service.reach.port, request.scope.get(SESSION_KEY)
    if _kind(request) is not Kind.PAGE or session is None:
        raise NotPaired("there is no session of the page to leave")
    _sessions(request).leave(session)
    # htmx goes where it is told; a browser without scripts is led on.
    headers = {"Set-Cookie": f"{_cookie(port, '')}; Max-Age=0", "HX-Redirect": "/"}
    return HTMLResponse(ONWARD, headers=headers)


def _kind(request: Request) -> Kind:
    caller: Caller = request.scope.get(SCOPE_KEY, STRANGER)
    return caller.kind


def _sessions(request: Request) -> Sessions:
    found: Sessions = request.app.state.sessions
    return found


async def _code(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind != FORM:
        raise InvalidRequest("body: send it as a form")
    if len(body) > MAX_FORM_BYTES:
        raise RequestTooLarge(f"this form has {MAX_FORM_BYTES} bytes at most")
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InvalidRequest("body: the form cannot be read") from None
    return next(iter(fields.get("code", ())), "")


def _cookie(port: int, token: str) -> str:
    """Gone with the browser. Not ``Secure``: a browser that keeps to the letter would not send it over plain HTTP."""
    return f"{cookie_name(port)}={token}; HttpOnly; SameSite=Strict; Path=/"


def _refused(error: EntryRefused) -> Response:
    # The templates' engine is imported when somebody first needs it.
    from signerd.loopback.page import rendering

    told = problem(error)
    html = rendering.render("problem_bare.html", problem=told, title=told["title"], here="")
    return rendering.answer(html, HTTPStatus(status_of(error)))


ROUTES = (Route(ENTER, enter, methods=["POST"]), Route(LEAVE, leave, methods=["POST"]))
