"""One call as a conversation without I/O: a plan yields what to do and is sent what came back (ADR 7).

Nothing here is repeated by itself, and nobody's session is renewed: the daemon is on this machine, and either answers or does not.
"""

import re
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import NoneType
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

from signerd.endpoint import QUICK_SECONDS
from signerd.errors import DaemonFailed, InvalidRequest, SignerdError
from signerd.problems import error_from
from signerd.shapes import ID_PATTERN
from signerd.shapes.calls import Call

T = TypeVar("T")

_FIRST_ERROR: Final = 400


@dataclass(frozen=True)
class CallArguments:
    """What a call puts into its row: ids for the path, the query (None is left out), the body as JSON.

    A body may hold a password or a PIN, and stays out of ``repr``.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Send:
    """Send this; a ``Reply`` comes back. ``path``: below ``/v1``, its ids filled in."""

    verb: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    seconds: float = QUICK_SECONDS


@dataclass(frozen=True)
class Reply:
    status: int
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Wait:
    """Wait before the next step."""

    seconds: float


Plan = Generator[Send | Wait, Reply | None, T]


def to_send(call: Call[Any], asked: CallArguments) -> Send:
    """Raises InvalidRequest for an id that could lead elsewhere than its row."""
    path = call.path.format_map({name: segment(text) for name, text in asked.path.items()})
    query = {name: value for name, value in asked.query.items() if value is not None}
    return Send(call.method, path, query, asked.body, call.seconds)


def segment(text: str) -> str:
    """An id as a part of the path: one that could lead elsewhere is no id. Raises InvalidRequest."""
    if not re.fullmatch(ID_PATTERN, text):
        raise InvalidRequest(f"'{text}' cannot be the id of anything", hint="Copy it as it is listed.")
    return text


def read(reply: Reply, call: Call[T]) -> T:
    """The answer in its shape; ``str``: its text as it is.

    Raises:
        DaemonFailed: it makes no sense. The leaf of SignerdError that a problem document speaks of.
    """
    if reply.status >= _FIRST_ERROR:
        raise refusal(reply)
    shape = call.answer
    if shape is NoneType:
        return None  # type: ignore[return-value]  # the shape was None's
    try:
        if shape is str:
            return reply.content.decode()  # type: ignore[return-value]  # the shape was str
        return TypeAdapter(shape).validate_json(reply.content)
    except (ValidationError, UnicodeDecodeError):
        raise DaemonFailed(f"the daemon's answer to {call.path} makes no sense") from None


def refusal(reply: Reply) -> SignerdError:
    """The daemon's no, as the error that it was there."""
    try:
        body = TypeAdapter(dict[str, Any]).validate_json(reply.content)
    except ValidationError:
        return DaemonFailed(f"the daemon answered {reply.status} and no more")
    return error_from(body)


P = ParamSpec("P")
R = TypeVar("R")


class PlainShell:
    """Its calls return their answers: ``DaemonClient``."""


class AwaitingShell:
    """Its calls are awaited: ``AsyncDaemonClient``."""


class method(Generic[P, R]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method. ``call``: the row of the table that it asks, where it asks a single one."""

    def __init__(self, plan: Callable[P, Plan[R]], call: Call[R] | None = None) -> None:
        self._plan = plan
        self.call = call
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: "PlainShell", owner: type | None = None) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, client: "AwaitingShell", owner: type | None = None
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: Any, owner: type | None = None) -> Any:
        if client is None:
            return self

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(self._plan(*args, **kwargs))

        bound.__doc__ = self.__doc__
        # So that help() and a notebook show what the call takes.
        bound.__wrapped__ = partial(self._plan)  # type: ignore[attr-defined]  # a function's own attribute
        return bound


def row(call: Call[R]) -> Callable[[Callable[P, CallArguments]], method[P, R]]:
    """A call that is one row of the table: the function says what of its arguments goes where."""

    def described(given: Callable[P, CallArguments]) -> method[P, R]:
        def plan(*args: P.args, **kwargs: P.kwargs) -> Plan[R]:
            asked = given(*args, **kwargs)
            reply = yield to_send(call, asked)
            assert reply is not None, "something was sent"
            return read(reply, call)

        plan.__doc__ = given.__doc__
        plan.__wrapped__ = given  # type: ignore[attr-defined]  # inspect.signature shows the call's own arguments
        return method(plan, call)

    return described
