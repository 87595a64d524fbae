"""Binds requests to an endpoint's arguments, and its result to a response, by the endpoint's annotations.

Only Starlette and pydantic: FastAPI would cost the daemon six megabytes for as long as it runs.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from custody.schemas.faults import fault_place, fault_words
from signerd.callers import STRANGER, Caller, Right
from signerd.errors import InvalidRequest
from signerd.loopback.access.headers import SCOPE_KEY
from signerd.shapes.account import DIGEST_PATTERN, ID_PATTERN
from signerd.shapes.proposals import PSBT_PATTERN

JSON = "application/json"
Endpoint = Callable[..., Awaitable[Any]]
Called = Callable[[Request], Awaitable[Response]]


class In(StrEnum):
    """Where an argument comes from, in OpenAPI's words. An unmarked argument is the body."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    BODY = "body"
    # Not in the request: an attribute of the application's state, by the argument's name.
    STATE = "state"
    # Not in the request either: the caller, as the guard established it.
    CALLER = "caller"


# The API's patterns in words, for errors.
_PATTERNS = MappingProxyType(
    {
        ID_PATTERN: "takes only letters, digits, - and _",
        DIGEST_PATTERN: "must be 64 hexadecimal digits",
        PSBT_PATTERN: "must be a PSBT in base64, without line breaks",
    }
)
_NOT_SENT = frozenset({In.STATE, In.CALLER})


@dataclass(frozen=True)
class Argument:
    """``alias``: its name in the request."""

    name: str
    alias: str
    place: In
    adapter: TypeAdapter[Any]
    default: Any

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    def read(self, request: Request, body: bytes) -> Any:
        """Raises InvalidRequest, which names the field and the rule, never the value: it may be a password
        (L10).
        """
        try:
            if self.place is In.BODY:
                return self.adapter.validate_json(body)
            text = self._text(request)
            if text is None and not self.required:
                return self.default
            return self.adapter.validate_python(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(filter(None, (*self._within(), fault_place(first)))) or str(self.place)
            raise InvalidRequest(f"{where}: {fault_words(first, _PATTERNS)}") from None

    def _text(self, request: Request) -> str | None:
        match self.place:
            case In.PATH:
                return str(request.path_params[self.alias])
            case In.HEADER:
                return request.headers.get(self.alias)
            case _:
                return request.query_params.get(self.alias)

    def _within(self) -> tuple[str, ...]:
        return () if self.place is In.BODY else (self.alias,)


def arguments(endpoint: Endpoint) -> tuple[Argument, ...]:
    """The arguments taken from the request, in the endpoint's order."""
    given = inspect.signature(endpoint).parameters.values()
    return tuple(argument for one in given if (argument := _argument(one)).place not in _NOT_SENT)


def answer_of(endpoint: Endpoint) -> TypeAdapter[Any] | None:
    """The serialiser of its answer; None where it returns a Response or nothing."""
    kind = inspect.signature(endpoint).return_annotation
    if kind is None or (isinstance(kind, type) and issubclass(kind, Response)):
        return None
    return _adapter(kind)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Its schema is built at first use, as the shapes' are."""
    is_shape = isinstance(kind, type) and issubclass(kind, BaseModel)
    return TypeAdapter(kind) if is_shape else TypeAdapter(kind, config=ConfigDict(defer_build=True))


def bind(endpoint: Endpoint, needs: Right) -> Called:
    """The endpoint as Starlette calls it. The caller's right is checked before the request is read."""
    asked, adapter = arguments(endpoint), answer_of(endpoint)
    given = {name: _place(one.annotation) for name, one in inspect.signature(endpoint).parameters.items()}
    owned = tuple(name for name, place in given.items() if place is In.STATE)
    callers = tuple(name for name, place in given.items() if place is In.CALLER)
    reads_body = any(one.place is In.BODY for one in asked)

    async def call(request: Request) -> Response:
        caller: Caller = request.scope.get(SCOPE_KEY, STRANGER)
        caller.require(needs)
        body = await _body(request) if reads_body else b""
        values = {one.name: one.read(request, body) for one in asked}
        values |= {name: getattr(request.app.state, name) for name in owned}
        found = await endpoint(**values, **dict.fromkeys(callers, caller))
        if adapter is not None:
            return Response(adapter.dump_json(found), media_type=JSON)
        return Response(status_code=HTTPStatus.NO_CONTENT) if found is None else found

    return call


async def _body(request: Request) -> bytes:
    """Raises InvalidRequest for a body that is not declared as JSON, as no HTML form's can be."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise InvalidRequest(f"body: send it as {JSON}")
    return await request.body()


def _argument(given: inspect.Parameter) -> Argument:
    place = _place(given.annotation)
    alias = given.name.replace("_", "-") if place is In.HEADER else given.name
    # The application's own objects are not validated.
    adapter = _adapter(Any if place in _NOT_SENT else given.annotation)
    return Argument(given.name, alias, place, adapter, given.default)


def _place(annotation: Any) -> In:
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, In)), In.BODY)
