"""The page's place in the application: everything beside ``/v1``, imported when somebody first opens it."""

from typing import TYPE_CHECKING

from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from signerd.callers import STRANGER, Caller, Kind
from signerd.daemon.service import Daemon
from signerd.endpoint import PREFIX
from signerd.loopback.access.request_head import SCOPE_KEY

if TYPE_CHECKING:
    from starlette.applications import Starlette

_PROGRAMS = frozenset({Kind.TERMINAL, Kind.APP})


class PageMount(Mount):
    """A route for the end of the table. A program never meets it: ``/v1`` is the interface's, and a terminal has no eyes for HTML."""

    def __init__(self, service: Daemon) -> None:
        super().__init__("", app=_LatePage(service))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        caller: Caller = scope.get(SCOPE_KEY, STRANGER)
        path = scope["path"]
        if caller.kind in _PROGRAMS or path == PREFIX or path.startswith(f"{PREFIX}/"):
            return Match.NONE, {}
        return super().matches(scope)


class _LatePage:
    """Most daemons run for weeks without anybody at their page: the templates' engine costs them nothing until then."""

    def __init__(self, service: Daemon) -> None:
        self._service = service
        self._made: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page()(scope, receive, send)

    def _page(self) -> ASGIApp:
        if self._made is None:
            from signerd.loopback.page.routes import make_page

            self._made = make_page(self._service)
        return self._made
