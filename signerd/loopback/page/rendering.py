"""A page request and its response: reading forms, rendering templates, errors in place, and static files.

Escaping is always on, and an undefined variable is an error. Files come from a fixed list: no path of a
request reaches the file system.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, get_origin
from urllib.parse import parse_qs

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from custody.common.pages.figures import sentence
from custody.common.pages.rendering import FORM, Fields, Live, Templates
from custody.common.pages.serving import HEADERS, HTML, Assets
from signerd import shapes
from signerd.api.described import described
from signerd.asking import ID
from signerd.callers import CallerKind, Right
from signerd.core.states import movement_words
from signerd.daemon.service import Daemon
from signerd.errors import InvalidRequest, NoSuchRoute, NotAllowed, NotPaired, SignerdError
from signerd.loopback.answers import ROUTES, Context
from signerd.loopback.binding import checked, shape_of
from signerd.problems import problem
from signerd.standing import is_proof, line_words, own_words

_PROPOSAL = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24}\b", re.ASCII)


def linked(text: str) -> Markup:
    """A check's sentence, where the proposals that it names are links."""
    return Markup(_PROPOSAL.sub(r'<a href="/proposals/\g<0>">\g<1>…</a>', str(sentence(text))))  # noqa: S704 - hex digits, in an escaped text


TEMPLATES = Templates(
    Path(__file__).parent / "templates",
    filters={
        "command": lambda folder: f"signerd --state {quote(folder)}",
        "is_proof": is_proof,
        "linked": linked,
        "movement_words": movement_words,
        "line_words": line_words,
        "own_words": own_words,
    },
)
render = TEMPLATES.render
live_part = TEMPLATES.live_part


def answer(
    html: str, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    return Response(html, status, {**HEADERS, **headers}, HTML)


# The longest form names fewer than twenty checks.
MAX_FIELDS = 100

P = ParamSpec("P")
R = TypeVar("R")
_Shape = TypeVar("_Shape", bound=shapes.LoopbackRequest)


@dataclass(frozen=True)
class PageRequest:
    """A request with what answers its caller."""

    request: Request
    to: Context

    # --- what was asked -------------------------------------------------------------------------------------

    @property
    def service(self) -> Daemon:
        return self.to.daemon

    async def given(self, call: "described[..., Any]", **more: object) -> Any:
        """The arguments of a call of the API, from the path and from the form, or from the query where there
        is none; what is empty is left out where it may be. ``more``: those that stand otherwise there.

        Raises InvalidRequest, which never repeats a value (L10).
        """
        wanted, sent = shape_of(call).model_fields, self.request.method == "POST"
        placed = {name: text for name, text in self.request.path_params.items() if name in wanted}
        values: dict[str, object] = {**placed, **more}
        for name in wanted.keys() - values.keys():
            one = wanted[name]
            fields = await self.fields() if sent else Fields(parse_qs(self.request.url.query))
            if get_origin(one.annotation) in {frozenset, tuple}:
                values[name] = fields.every(name)
            elif sent and one.annotation is bool:
                values[name] = fields.ticked(name)
            elif fields.one(name) or one.is_required():
                values[name] = fields.one(name)
        return shaped(shape_of(call), **values)

    async def call(self, call: "described[P, R]", **more: object) -> R:
        """Have a call answered as the API answers it. ``more``, and raises: as ``given``, and the call's."""
        answered: R = await ROUTES[call](self.to)(**dict(await self.given(call, **more)))
        return answered

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def path_id(self, name: str) -> str:
        """Raises InvalidRequest for what is not an id."""
        given = str(self.request.path_params[name])
        if ID.fullmatch(given) is None:
            raise InvalidRequest(f"{name}: this is not an id")
        return given

    async def fields(self) -> Fields:
        """Raises InvalidRequest for a body that is not a form."""
        kind = self.request.headers.get("content-type", "")
        if not kind.lower().startswith(FORM):
            raise InvalidRequest("the page takes only its own forms")
        try:
            return Fields.read(kind, await self.request.body(), MAX_FIELDS)
        except ValueError:
            raise InvalidRequest("the form cannot be read") from None

    # --- the answer -----------------------------------------------------------------------------------------

    def part(self, live: Live, *others: Live, **context: object) -> Response:
        """A live part, which the browser requests after an event: no content where it shows that already.

        ``others``: further parts that the same form changed.
        """
        html, mark = live_part(live, context)
        if mark == self.query("seen"):
            return answer("", HTTPStatus.NO_CONTENT)
        beside = (live_part(other, context, beside=True)[0] for other in others)
        return answer("".join((html, *beside)))


def shaped(kind: type[_Shape], **values: object) -> _Shape:
    """The form's values as a shape of the API. Raises InvalidRequest."""
    return checked(kind.model_validate, values, "Correct it and send the form again.")


def fragment(template: str, **context: object) -> Response:
    return answer(render(template, **context))


Endpoint = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True)
class PageRoute:
    """A route of the page. ``needs`` PERSON: a page session. ``camera``: its document may use the camera."""

    method: str
    path: str
    endpoint: Endpoint
    needs: Right = Right.PERSON
    camera: bool = False


# What a template takes.
MakesContext = Callable[[PageRequest], Awaitable[Mapping[str, Any]]]


async def _nothing(_request: PageRequest) -> Mapping[str, Any]:
    return {}


def page(
    path: str,
    template: str,
    title: str | None,
    context: MakesContext = _nothing,
    *,
    here: str | None = None,
    camera: bool = False,
) -> PageRoute:
    """``title``: None where the context has it. ``here``: its entry in the menu, where not its own."""

    async def endpoint(request: PageRequest) -> Response:
        # The status first: what happens meanwhile is after its position, and refreshes the page.
        made = {"title": title, "status": await request.service.status(), **await context(request)}
        return answer(render(template, here=here or path, **made))

    return PageRoute("GET", path, endpoint, camera=camera)


def part(path: str, context: MakesContext, name: str = "part") -> PageRoute:
    """A live part, as the browser fetches it again. ``name``: under which the context has it."""

    async def endpoint(request: PageRequest) -> Response:
        made = await context(request)
        return request.part(made[name], **made)

    return PageRoute("GET", path, endpoint)


def act(
    path: str,
    call: "described[P, R]",
    shown: str | Callable[[PageRequest, R], Awaitable[Response]],
    method: str = "POST",
) -> PageRoute:
    """The form that makes one call of the API, or what is read by one. ``shown``: shows its answer, or the
    template that does, which has it as ``done``.
    """

    async def endpoint(request: PageRequest) -> Response:
        done = await request.call(call)
        return fragment(shown, done=done) if isinstance(shown, str) else await shown(request, done)

    return PageRoute(method, path, endpoint)


def act_on(path: str, call: "described[..., Any]", context: MakesContext, *parts: Live) -> PageRoute:
    """As ``act``. ``parts``: those of the page that it changes."""

    async def shown(request: PageRequest, _done: object) -> Response:
        return request.part(*parts, **await context(request))

    return act(path, call, shown)


# The header of every htmx request.
FRAGMENT = "hx-request"
# Into the submitted form, at its template's place for an error.
IN_PLACE = {"HX-Retarget": "find .problem", "HX-Reswap": "innerHTML"}
# A part that failed to refresh keeps what it shows.
LEFT = {"HX-Reswap": "none"}
ENDED = "this page's session has ended, and nothing was done"
ENTER_AGAIN = "Open it again: `signerd open`"


async def problem_answer(request: PageRequest, error: SignerdError) -> Response:
    is_outside = isinstance(error, NotPaired | NotAllowed)
    if FRAGMENT in request.request.headers:
        told = NotPaired(ENDED, hint=ENTER_AGAIN) if is_outside else error
        headers = LEFT if request.request.method == "GET" else IN_PLACE
        return answer(render("problem.html", problem=problem(told)), error.http_status, headers)
    if is_outside:
        # Nothing of the daemon is shown, not even its network.
        return answer(render("enter.html", problem=None), error.http_status)
    missing = error.http_status == HTTPStatus.NOT_FOUND
    title = "Not found" if missing else "This cannot be shown now"
    context = {"problem": problem(error), "title": title, "here": ""}
    if request.to.caller.kind is CallerKind.PAGE:
        # The frame needs the daemon's status; where that fails too, the problem is shown without it.
        with contextlib.suppress(SignerdError):
            framed = render("problem_page.html", status=await request.service.status(), **context)
            return answer(framed, error.http_status)
    return answer(render("problem_bare.html", **context), error.http_status)


STATIC = Path(__file__).parent / "static"
# The two of "qr" import each other by these names.
ASSETS = Assets(STATIC)


async def asset(request: PageRequest) -> Response:
    file = ASSETS.answer(request.request, request.request.path_params["name"], HEADERS)
    if file is None:
        raise NoSuchRoute("there is no such file")
    return file


ASSET_ROWS = (PageRoute("GET", "/static/{name:path}", asset, Right.ANYONE),)
