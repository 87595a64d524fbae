"""Declares each call once: a row of the platform's table, a method of ``Client`` and an awaitable of
``AsyncClient``.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from pydantic import BaseModel, TypeAdapter

from custody.client.flow import Core, Plan, attempt, call, checked, read

if TYPE_CHECKING:
    from custody.client.clients import AsyncClient, Client

P = ParamSpec("P")
R = TypeVar("R")


class method(Generic[P, R]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method: plain on ``Client``, awaitable on ``AsyncClient``, typed on both.

    ``shown``: the function whose parameters ``help()`` shows, where it is not the plan.
    """

    def __init__(
        self, plan: Callable[Concatenate[Core, P], Plan[R]], shown: Callable[P, Any] | None = None
    ) -> None:
        self._plan = plan
        self._shown = shown
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: "Client", owner: type | None = None) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, client: "AsyncClient", owner: type | None = None
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: Any, owner: type | None = None) -> Any:
        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(self._plan(client.core, *args, **kwargs))

        bound.__doc__ = self.__doc__
        if client is not None:
            # So that help() and a notebook show what the call takes; worked out only there.
            bound.__wrapped__ = self._shown or partial(self._plan, client.core)  # type: ignore[attr-defined]  # a function's own attribute
        return bound


@dataclass(frozen=True)
class Sent:
    """What a call sends: a body, a query (None is left out), the ids in its path, an ``Idempotency-Key``.

    A body may hold a password, and stays out of ``repr``.
    """

    body: BaseModel | None = field(default=None, repr=False)
    query: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, int] = field(default_factory=dict)
    key: str | None = None


def row(
    verb: str,
    path: str,
    answers: type[R] | TypeAdapter[R],
    *,
    repeatable: bool | None = None,
    signed_in: bool = True,
) -> Callable[[Callable[P, Sent]], method[P, R]]:
    """A call that is one row of the platform's table: the function says what of its arguments is sent where.

    ``repeatable``: whether it is sent again where no answer came; None: only with an idempotency key.
    """

    def described(given: Callable[P, Sent]) -> method[P, R]:
        def plan(core: Core, /, *args: P.args, **kwargs: P.kwargs) -> Plan[R]:
            sent = given(*args, **kwargs)
            headers = {} if sent.key is None else {"Idempotency-Key": sent.key}
            request = core.build(verb, path.format_map(sent.path), sent.body, sent.query, headers)
            again = sent.key is not None if repeatable is None else repeatable
            if signed_in:
                response = yield from call(core, request, repeatable=again)
            else:
                response = checked((yield from attempt(core, request, repeatable=again)))
            return read(response, answers)

        plan.__doc__ = f"``{verb} {path}``" + (f": {given.__doc__}" if given.__doc__ else ".")
        return method(plan, given)

    return described
