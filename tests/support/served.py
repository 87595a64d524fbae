"""A daemon behind its real socket, on a loop in another thread, for blocking clients and commands."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from signerd.callers import LoopbackCaller
from signerd.client import DaemonClient
from signerd.daemon.service import Daemon
from signerd.endpoint import HOST, PageAddress, socket_path
from signerd.errors import NotPaired
from signerd.feed import Feed
from signerd.loopback.serve import serving
from tests.support.daemons import daemon_at, prepare, until
from tests.support.desk import snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform


@dataclass
class Served:
    """The socket's folder, the service, and its loop."""

    state: Path
    service: Any
    portal: BlockingPortal

    def client(self) -> DaemonClient:
        return DaemonClient(self.state)

    def raw(self) -> httpx.Client:
        """HTTP over the socket, for requests that no client makes."""
        uds = str(socket_path(self.state))
        return httpx.Client(
            transport=httpx.HTTPTransport(uds=uds), base_url=f"http://{HOST}", trust_env=False
        )

    def on_loop(self, what: Callable[..., Any], *args: Any) -> Any:
        return self.portal.call(what, *args)

    def feed(self, subject: str, kind: str, text: str) -> None:
        self.on_loop(self.service.feed.add, subject, kind, text)

    def until(self, what: Callable[[], bool]) -> None:
        self.portal.call(until, what)


@contextmanager
def served(service: AbstractAsyncContextManager[Daemon], state: Path, **given: Any) -> Iterator[Served]:
    """``given``: further arguments of ``serving``; without a ``port`` there is only the socket."""

    @asynccontextmanager
    async def both() -> AsyncIterator[Daemon]:
        async with service as answering, serving(answering, state, **given):
            yield answering

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(both()) as port:
        yield Served(state, port, portal)


@dataclass
class ScriptedTokens:
    """The paired apps: callers by token and bound origin."""

    paired: dict[tuple[str, str | None], LoopbackCaller] = field(default_factory=dict)
    let_in: set[str] = field(default_factory=set)

    def caller(self, token: str, origin: str | None) -> LoopbackCaller:
        try:
            return self.paired[token, origin]
        except KeyError:
            raise NotPaired("no app has this token") from None

    def origins(self) -> set[str]:
        return self.let_in

    async def gone(self, app_id: str) -> None:
        await asyncio.Event().wait()


class NothingImported:
    """Hides nothing from any app."""

    def hides(self, _caller: LoopbackCaller, _subject: str) -> bool:
        return False


@dataclass
class Scripted:
    """A daemon with scripted answers: a value, an error to raise, or a function of the arguments."""

    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    feed: Feed = field(default_factory=Feed)
    page_address: PageAddress = field(default_factory=PageAddress)
    apps: Any = field(default_factory=ScriptedTokens)
    imported: Any = field(default_factory=NothingImported)

    async def _answer(self, name: str, *args: Any) -> Any:
        self.calls.append((name, *args))
        given = self.answers[name]
        if isinstance(given, BaseException):
            raise given
        if callable(given):
            given = given(*args)
            return await given if hasattr(given, "__await__") else given
        return given

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def asked(*args: Any, **named: Any) -> Any:
            return await self._answer(name, *args, *named.values())

        return asked


@contextmanager
def served_script(state: Path, **answers: Any) -> Iterator[Served]:
    @asynccontextmanager
    async def script() -> AsyncIterator[Scripted]:
        yield Scripted(answers)

    state.mkdir(mode=0o700, exist_ok=True)
    with served(script(), state) as found:
        yield found


async def brief_sleep(seconds: float) -> None:
    """Short pauses, so that the daemon leaves the processor to its callers in other processes."""
    await asyncio.sleep(min(seconds, 0.03))


@dataclass
class Outer:
    """The surroundings of a real daemon: a scripted platform and a fake device."""

    platform: FakePlatform
    bridge: FakeBridge = field(default_factory=FakeBridge)


def make_outer(folder: Path) -> Outer:
    """With one honest proposal, "p-1"."""
    place = folder / "platform"
    place.mkdir(exist_ok=True)
    return Outer(FakePlatform(place, {"p-1": snapshot_of(spend())}))


@contextmanager
def served_daemon(
    state: Path, outer: Outer, *, prepared: bool = True, port: int | None = None, **given: Any
) -> Iterator[Served]:
    """A real daemon: signed in, its device registered and its vault pinned where ``prepared``."""
    state.mkdir(mode=0o700, exist_ok=True)
    if prepared:
        prepare(state)
    given.setdefault("sleep", brief_sleep)
    daemon: AbstractAsyncContextManager[Daemon] = daemon_at(state, outer.platform, outer.bridge, **given)
    with served(daemon, state, port=port) as found:
        yield found
