"""One request of the page and its answer: what the form says, templates to HTML with one policy, errors where
they happened, and the files beside the HTML.

Escaping is always on, and nothing undefined passes. Files come from a fixed list: no path of a request
reaches the file system.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from custody.pages.assets import Assets
from custody.pages.headers import HEADERS, HTML
from custody.pages.rendering import FORM, Fields, Live, Templates
from custody.schemas.faults import fault_place, fault_words
from signerd import shapes
from signerd.callers import STRANGER, Caller, Kind, Right
from signerd.core.states import is_proof, movement_words, network_words, state_words
from signerd.daemon.service import Daemon
from signerd.errors import InvalidRequest, NoSuchRoute, NotAllowed, NotPaired, SignerdError
from signerd.loopback.access.headers import SCOPE_KEY
from signerd.problems import problem, status_of

TEMPLATES = Templates(
    Path(__file__).parent / "templates",
    filters={
        "is_proof": is_proof,
        "movement_words": movement_words,
        "network_words": network_words,
        "state_words": state_words,
    },
)
render = TEMPLATES.render
live_part = TEMPLATES.live_part


def answer(
    html: str, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    return Response(html, status, {**HEADERS, **headers}, HTML)


# What the status tells, on every page.
NOTES = Live("notes", "parts/notes.html", "/parts/notes")
# The longest form of ours names each of fewer than twenty checks.
MAX_FIELDS = 100

_Shape = TypeVar("_Shape", bound=shapes.Request)
_ID: TypeAdapter[str] = TypeAdapter(shapes.Id)


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
        kind = self.request.headers.get("content-type", "")
        if not kind.lower().startswith(FORM):
            raise InvalidRequest("the page takes its own forms alone")
        try:
            return Fields.read(kind, await self.request.body(), MAX_FIELDS)
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
    """``needs`` PERSON: only a session of the page gets in. Paths hold ids in braces, as the interface's do.
    ``camera``: its document may ask the person for the camera.
    """

    method: str
    path: str
    endpoint: Endpoint
    needs: Right = Right.PERSON
    camera: bool = False


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
    missing = status_of(error) == HTTPStatus.NOT_FOUND
    context = {"problem": told, "title": "Not found" if missing else "This cannot be shown now", "here": ""}
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


STATIC = Path(__file__).parent / "static"
# By their names the two of "qr" ask for each other.
ASSETS = Assets(STATIC, ("enter.js", "page.js", "camera.js", "qr/decode.js", "qr/index.js"))


async def asset(asked: PageRequest) -> Response:
    found = ASSETS.answer(asked.request, asked.request.path_params["name"], HEADERS)
    if found is None:
        raise NoSuchRoute("there is no such file")
    return found


ASSET_ROWS = (Row("GET", "/static/{name:path}", asset, Right.ANYONE),)
