"""Binds requests to the arguments of a call (``signerd.api``), and its answer to a response.

Only Starlette and pydantic: FastAPI would cost the daemon six megabytes for as long as it runs.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from inspect import Parameter, signature
from types import MappingProxyType, NoneType
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from custody.schemas.errors import fault_sentence
from signerd import shapes
from signerd.api.described import described, header
from signerd.callers import STRANGER, LoopbackCaller
from signerd.errors import InvalidRequest
from signerd.loopback.access.headers import SCOPE_KEY
from signerd.shapes.account import DIGEST_PATTERN, ID_PATTERN
from signerd.shapes.proposals import PSBT_PATTERN

JSON = "application/json"
# Where the arguments are that are neither in the address nor a header.
BODY = "body"
S = TypeVar("S", bound=BaseModel)
Method = Callable[..., Awaitable[Any]]
Called = Callable[[Request], Awaitable[Response]]


# The API's patterns in words, for errors.
PATTERNS = MappingProxyType(
    {
        ID_PATTERN: "takes only letters, digits, - and _",
        DIGEST_PATTERN: "must be 64 hexadecimal digits",
        PSBT_PATTERN: "must be a PSBT in base64, without line breaks",
    }
)


class _Body(shapes.LoopbackRequest):
    """The fields of a call's body. It may hold a password: nothing of it is in its ``repr`` (L10)."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return iter(())


_bodies: dict[str, type[_Body]] = {}


def body_of(call: "described[..., Any]") -> Any:
    """The shape of its body, made of its arguments. Calls that name the same body have the same one."""
    assert call.body is not None, "it has a body"
    if call.body not in _bodies:
        about = "\n\n".join(one for one in call.paragraphs() if one.startswith("``"))
        named = [name for name in signature(call.takes).parameters if call.place(name) == BODY]
        _bodies[call.body] = create_model(
            call.body, __base__=_Body, __doc__=about or None, **_fields(call, named)
        )
    return _bodies[call.body]


@cache
def shape_of(call: "described[..., Any]") -> Any:
    """The shape of all its arguments, by which the page checks its forms and queries."""
    return create_model(call.name, __base__=_Body, **_fields(call, signature(call.takes).parameters))


def _fields(call: "described[..., Any]", names: Iterable[str]) -> dict[str, Any]:
    given = signature(call.takes).parameters
    return {
        name: (call.hints[name], ... if given[name].default is Parameter.empty else given[name].default)
        for name in names
    }


@dataclass(frozen=True)
class Argument:
    """What a request has in one place. ``alias``: its name there; of the body, ``BODY``."""

    name: str
    alias: str
    place: str
    required: bool
    adapter: TypeAdapter[Any]


@cache
def arguments(call: "described[..., Any]") -> tuple[Argument, ...]:
    """In the order of its signature; the body last, as one."""
    given = ((name, call.place(name), one) for name, one in signature(call.takes).parameters.items())
    named = (
        Argument(
            name,
            header(name) if place == "header" else name,
            place,
            one.default is Parameter.empty,
            _adapter(call.hints[name]),
        )
        for name, place, one in given
        if place != BODY
    )
    body = () if call.body is None else (Argument(BODY, BODY, BODY, True, _adapter(body_of(call))),)  # noqa: FBT003
    return (*named, *body)


def answer_of(call: "described[..., Any]") -> TypeAdapter[Any] | None:
    """The serialiser of its answer; None where there is none, or it is no JSON."""
    kind = call.hints["return"]
    return None if kind is NoneType or call.media_type is not None else _adapter(kind)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Its schema is built at first use, as the shapes' are."""
    is_shape = isinstance(kind, type) and issubclass(kind, BaseModel)
    return TypeAdapter(kind) if is_shape else TypeAdapter(kind, config=ConfigDict(defer_build=True))


def bind(call: "described[..., Any]", answer: Callable[[LoopbackCaller], Method]) -> Called:
    """The call as Starlette has it. ``answer``: gives what answers this caller. The caller's right is checked
    before the request is read.
    """
    adapter = answer_of(call)
    named = [name for name in signature(call.takes).parameters if call.place(name) != BODY]
    outside = create_model(call.name, __base__=_Body, **_fields(call, named))

    async def called(request: Request) -> Response:
        caller: LoopbackCaller = request.scope.get(SCOPE_KEY, STRANGER)
        caller.require(call.needs)
        sent = {name: text for name in named if (text := _text(request, name, call.place(name))) is not None}
        values = dict(checked(outside.model_validate, sent))
        if call.body is not None:
            values |= dict(checked(body_of(call).model_validate_json, await _body(request)))
        given = await answer(caller)(**values)
        if adapter is not None:
            return Response(adapter.dump_json(given), media_type=JSON)
        return Response(status_code=HTTPStatus.NO_CONTENT) if given is None else given

    return called


def _text(request: Request, name: str, place: str) -> str | None:
    if place == "path":
        return str(request.path_params[name])
    return request.headers.get(header(name)) if place == "header" else request.query_params.get(name)


def checked(validate: Callable[[Any], S], given: Any, hint: str | None = None) -> S:
    """Raises InvalidRequest, which names field and rule, never the value: it may be a password (L10)."""
    try:
        return validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequest(fault_sentence(first, PATTERNS), hint=hint) from None


# Starlette's answers for what no route takes.
NOT_IN_THE_TABLE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
UNFORESEEN = "the daemon failed in an unforeseen way"


def route(method: str, path: str, endpoint: Called) -> Route:
    made = Route(path, endpoint, methods=[method])
    # Starlette adds HEAD to every GET.
    made.methods = {method}
    return made


async def _body(request: Request) -> bytes:
    """Raises InvalidRequest for a body that is not declared as JSON, as no HTML form's can be."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise InvalidRequest(f"body: send it as {JSON}")
    return await request.body()
