"""A call that is described once: a plan as a plain method of one client and an awaitable one of the other."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from custody.client.flow import Core, Plan

if TYPE_CHECKING:
    from custody.client.clients import AsyncClient, Client

P = ParamSpec("P")
R = TypeVar("R")


class method(Generic[P, R]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method: plain on ``Client``, awaitable on ``AsyncClient``, typed on both."""

    def __init__(self, plan: Callable[Concatenate[Core, P], Plan[R]]) -> None:
        self._plan = plan
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
            bound.__wrapped__ = partial(self._plan, client.core)  # type: ignore[attr-defined]
        return bound


def idempotency(key: str | None) -> dict[str, str]:
    """The header that makes a creating call safe to repeat (``Idempotency-Key``)."""
    return {} if key is None else {"Idempotency-Key": key}
