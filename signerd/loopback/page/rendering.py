"""One request of the page and its answer: what the form says, templates to HTML with one policy, errors where
they happened, and the files beside the HTML.

Escaping is always on, and nothing undefined passes. Files come from a fixed list: no path of a request
reaches the file system.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from custody.pages import figures
from custody.pages.assets import SHARED_TEMPLATES, Assets
from custody.schemas.faults import fault_place, fault_words
from signerd import shapes
from signerd.callers import STRANGER, Caller, Kind, Right
from signerd.core.states import movement_words, network_words, state_words
from signerd.daemon.service import Daemon
from signerd.errors import InvalidRequest, NoSuchRoute, NotAllowed, NotPaired, SignerdError
from signerd.loopback.access.headers import PAGE_POLICY, SCOPE_KEY
from signerd.problems import problem, status_of

TEMPLATES = Path(__file__).parent / "templates"

# Said with every answer. Nothing of a page is kept by the browser: it is of the moment, and of one person.
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": PAGE_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Live:
    """``name``: its id on the page. ``path``: where it is asked for again."""

    name: str
    template: str
    path: str


@lru_cache(maxsize=1)
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader((TEMPLATES, SHARED_TEMPLATES)),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(figures.FILTERS)
    made.filters.update(state_words=state_words, network_words=network_words, movement_words=movement_words)
    made.globals.update(live=_live)
    return made


def render(template: str, **context: object) -> str:
    return environment().get_template(template).render(context)


def live_part(live: Live, context: Mapping[str, Any], *, beside: bool = False) -> tuple[Markup, str]:
    """The part's HTML and its mark. ``beside``: it comes with another part and finds its own place."""
    # What a template renders is escaped already.
    inner = Markup(render(live.template, **{**context, "live_path": live.path}))  # noqa: S704
    mark = hashlib.sha256(inner.encode()).hexdigest()[:16]
    join = "&" if "?" in live.path else "?"
    frame = Markup(
        '<div id="{name}" class="live" hx-get="{path}{join}seen={mark}" hx-trigger="happened from:body"'
        ' hx-target="this" hx-swap="outerHTML"{beside}>{inner}</div>'
    )
    oob = Markup(' hx-swap-oob="true"') if beside else ""
    return frame.format(name=live.name, path=live.path, join=join, mark=mark, beside=oob, inner=inner), mark


@pass_context
def _live(context: Context, live: Live) -> Markup:
    """In a template: ``{{ live(part) }}``, with all that the template itself knows."""
    return live_part(live, context.get_all())[0]


def answer(
    html: str, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    return Response(html, status, {**HEADERS, **headers}, HTML)


FORM = "application/x-www-form-urlencoded"
# What the status tells, on every page.
NOTES = Live("notes", "parts/notes.html", "/parts/notes")
# The longest form of ours names each of fewer than twenty checks.
MAX_FIELDS = 100

_Shape = TypeVar("_Shape", bound=shapes.Request)
_ID: TypeAdapter[str] = TypeAdapter(shapes.Id)


@dataclass(frozen=True)
class Fields:
    """What a form sent, by name. A checkbox that is not ticked sends nothing."""

    values: Mapping[str, Sequence[str]]

    def one(self, name: str) -> str:
        """The first value, or nothing."""
        return next(iter(self.values.get(name, ())), "")

    def every(self, name: str) -> tuple[str, ...]:
        return tuple(self.values.get(name, ()))

    def ticked(self, name: str) -> bool:
        return name in self.values


@dataclass(frozen=True)
class PageRequest:
    """``service``: the port behind the page."""

    request: Request
    service: Daemon

    # --- what was asked -------------------------------------------------------------------------------------

    @property
    def caller(self) -> Caller:
        found: Caller = self.request.scope.get(SCOPE_KEY, STRANGER)
        return found

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def path_id(self, name: str) -> str:
        """Raises InvalidRequest for what no id can be."""
        try:
            return _ID.validate_python(self.request.path_params[name])
        except ValidationError:
            raise InvalidRequest(f"{name}: this is no id") from None

    async def fields(self) -> Fields:
        """Raises InvalidRequest for a body that is no form."""
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != FORM:
            raise InvalidRequest("the page takes its own forms alone")
        try:
            text = (await self.request.body()).decode()
            return Fields(parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
        except ValueError:
            raise InvalidRequest("the form cannot be read") from None

    # --- the answer -----------------------------------------------------------------------------------------

    async def page(self, template: str, *, status: HTTPStatus = HTTPStatus.OK, **context: object) -> Response:
        """The whole page: the frame around ``template``, with the daemon's status in it."""
        frame = {"status": await self.service.status(), "notes_part": NOTES}
        return answer(render(template, **frame, **context), status)

    def part(self, live: Live, *others: Live, **context: object) -> Response:
        """A part that the browser asks for when something happened: no content where it shows that already.

        ``others`` come along where a form changed more than its own part.
        """
        html, mark = live_part(live, context)
        if mark == self.query("seen"):
            return answer("", HTTPStatus.NO_CONTENT)
        beside = (live_part(other, context, beside=True)[0] for other in others)
        return answer("".join((html, *beside)))


def shaped(kind: type[_Shape], **values: object) -> _Shape:
    """What a form says as the interface's own shape. Raises InvalidRequest, which never repeats what was sent
    (L10).
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        sentence = f"{fault_place(first)}: {fault_words(first)}"
        raise InvalidRequest(sentence, hint="Correct it and send the form again.") from None


Endpoint = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True)
class Row:
    """``needs`` PERSON: only a session of the page gets in. Paths hold ids in braces, as the
    interface's do.
    """

    method: str
    path: str
    endpoint: Endpoint
    needs: Right = Right.PERSON


# htmx says so of its own requests.
FRAGMENT = "hx-request"
# In the form that was sent, where its template keeps a place for it.
IN_PLACE = {"HX-Retarget": "find .problem", "HX-Reswap": "innerHTML"}
# A part that could not be had stays as it is: what it shows is still what was true.
LEFT = {"HX-Reswap": "none"}
ENTER_AGAIN = "Open it again: `signerd open`"


async def problem_answer(asked: PageRequest, error: SignerdError) -> Response:
    if isinstance(error, NotPaired | NotAllowed):
        return _enter(asked, error)
    told = problem(error)
    if FRAGMENT in asked.request.headers:
        headers = LEFT if asked.request.method == "GET" else IN_PLACE
        return answer(render("problem.html", problem=told), status_of(error), headers)
    context = {"problem": told, "title": told["title"], "here": ""}
    if asked.caller.kind is Kind.PAGE:
        # The frame needs the daemon's status: where that fails too, the words stand alone.
        with contextlib.suppress(SignerdError):
            return await asked.page("problem_page.html", status=status_of(error), **context)
    return answer(render("problem_bare.html", **context), status_of(error))


def _enter(asked: PageRequest, error: SignerdError) -> Response:
    """Nothing of the daemon stands on it: not even which network it is for."""
    if FRAGMENT in asked.request.headers:
        headers = LEFT if asked.request.method == "GET" else IN_PLACE
        told = problem(NotPaired("this page is not open any more, and nothing was done", hint=ENTER_AGAIN))
        return answer(render("problem.html", problem=told), status_of(error), headers)
    return answer(render("enter.html", problem=None), status_of(error))


ASSETS = Assets(Path(__file__).parent / "static", ("enter.js", "page.js"))


async def asset(asked: PageRequest) -> Response:
    found = ASSETS.answer(asked.request, asked.request.path_params["name"], HEADERS)
    if found is None:
        raise NoSuchRoute("there is no such file")
    return found


ASSET_ROWS = (Row("GET", "/static/{name}", asset, Right.ANYONE),)
