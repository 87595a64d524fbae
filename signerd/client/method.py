"""A call that is described once: a plain method of one shell and an awaitable one of the other."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from signerd.client.flow import Asked, Plan, read, to_send
from signerd.shapes.calls import Call

if TYPE_CHECKING:
    from signerd.client.awaiting import AsyncDaemonClient
    from signerd.client.waiting import DaemonClient

P = ParamSpec("P")
R = TypeVar("R")


class method(Generic[P, R]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method. ``call``: the row of the table that it asks, where it asks a single one."""

    def __init__(self, plan: Callable[P, Plan[R]], call: Call[R] | None = None) -> None:
        self._plan = plan
        self.call = call
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: "DaemonClient", owner: type | None = None) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, client: "AsyncDaemonClient", owner: type | None = None
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


def row(call: Call[R]) -> Callable[[Callable[P, Asked]], method[P, R]]:
    """A call that is one row of the table: the function says what of its arguments goes where."""

    def described(given: Callable[P, Asked]) -> method[P, R]:
        def plan(*args: P.args, **kwargs: P.kwargs) -> Plan[R]:
            asked = given(*args, **kwargs)
            reply = yield to_send(call, asked)
            assert reply is not None, "something was sent"
            return read(reply, call)

        plan.__doc__ = given.__doc__
        plan.__wrapped__ = given  # type: ignore[attr-defined]  # inspect.signature shows the call's own arguments
        return method(plan, call)

    return described
