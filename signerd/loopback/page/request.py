"""One request of the page: who asks, what the form says, and how the answer is made."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qs

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from signerd import shapes
from signerd.callers import STRANGER, Caller, Right
from signerd.daemon.service import Daemon
from signerd.errors import InvalidRequest
from signerd.loopback.access.request_head import SCOPE_KEY
from signerd.loopback.page import rendering
from signerd.loopback.page.rendering import Live

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

    # --- what was asked ----------------------------------------------------------------------------------------------

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

    # --- the answer --------------------------------------------------------------------------------------------------

    async def page(self, template: str, *, status: HTTPStatus = HTTPStatus.OK, **context: object) -> Response:
        """The whole page: the frame around ``template``, with the daemon's status in it."""
        frame = {"status": await self.service.status(), "notes_part": NOTES}
        return rendering.answer(rendering.render(template, **frame, **context), status)

    def part(self, live: Live, *others: Live, **context: object) -> Response:
        """A part that the browser asks for when something happened: no content where it shows that already.

        ``others`` come along where a form changed more than its own part.
        """
        html, mark = rendering.live_part(live, context)
        if mark == self.query("seen"):
            return rendering.answer("", HTTPStatus.NO_CONTENT)
        beside = (rendering.live_part(other, context, beside=True)[0] for other in others)
        return rendering.answer("".join((html, *beside)))


def shaped(kind: type[_Shape], **values: object) -> _Shape:
    """What a form says as the interface's own shape. Raises InvalidRequest, which never repeats what was sent (L10)."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(f"{where}: {first['msg']}", hint="Correct it and send the form again.") from None


Endpoint = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True)
class Row:
    """``needs`` PERSON: only a session of the page gets in. Paths hold ids in braces, as the interface's do."""

    method: str
    path: str
    endpoint: Endpoint
    needs: Right = Right.PERSON
