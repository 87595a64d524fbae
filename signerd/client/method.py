"""A call that is described once: a plain method of one shell and an awaitable one of the other."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from signerd.client.flow import QUICK_SECONDS, Asked, Plan, read, to_send

if TYPE_CHECKING:
    from signerd.client.awaiting import AsyncDaemonClient
    from signerd.client.waiting import DaemonClient

P = ParamSpec("P")
R = TypeVar("R")
# The verb and the path of a row of the daemon's table, as it stands there.
Place = tuple[str, str]


class method(Generic[P, R]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method. ``place``: the row of the table that it asks, where it asks a single one."""

    def __init__(self, plan: Callable[P, Plan[R]], place: Place | None = None) -> None:
        self._plan = plan
        self.place = place
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


def row(
    verb: str, path: str, answers: type[R], *, seconds: float | None = None
) -> Callable[[Callable[P, Asked]], method[P, R]]:
    """A call that is one row of the table: the function says what of its arguments goes where.

    ``seconds``: how long its answer may take; None: as one that waits for nobody.
    """

    def described(given: Callable[P, Asked]) -> method[P, R]:
        def plan(*args: P.args, **kwargs: P.kwargs) -> Plan[R]:
            asked = given(*args, **kwargs)
            reply = yield to_send(verb, path, asked, QUICK_SECONDS if seconds is None else seconds)
            assert reply is not None, "something was sent"
            return read(reply, path, answers)

        plan.__doc__ = given.__doc__
        plan.__wrapped__ = given  # type: ignore[attr-defined]  # inspect.signature shows the call's own arguments
        return method(plan, (verb, path))

    return described
