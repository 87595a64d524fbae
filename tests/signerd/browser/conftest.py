"""A real daemon behind its real port, and a person's browser before it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from signerd.core.states import State
from signerd.loopback.access.sessions import PageSessions
from tests.signerd.loopback.access.test_guard import Clock
from tests.support.browser import PATIENCE_MS, WIDE, Complaints, browser, chromium, origin_of, seat, show
from tests.support.daemons import MemoryStore, daemon_at, make_config, prepare, unhurried_sleep
from tests.support.fake_bridge import FakeBridge
from tests.support.served import Outer, Served, make_outer, served

__all__ = ["browser", "chromium"]


@dataclass
class Desk:
    """One person: their daemon, the world around it, their browser. ``prepared``:
    registered and pinned already.
    """

    browser: Browser
    folder: Path
    outer: Outer
    clock: Clock = field(default_factory=Clock)
    store: MemoryStore = field(default_factory=MemoryStore)
    config: dict[str, Any] = field(default_factory=lambda: {"checks": {"lowered": ["fee-share"]}})
    prepared: bool = True
    sign_in: bool = True
    daemon: Served = field(init=False)
    complaints: list[Complaints] = field(default_factory=list)
    # What a test brings about on purpose.
    forgiven: tuple[str, ...] = ()
    _running: ExitStack = field(default_factory=ExitStack)
    _windows: ExitStack = field(default_factory=ExitStack)

    # --- the daemon -----------------------------------------------------------------------------------------

    def start(self, port: int = 0) -> Served:
        state = self.folder / "s"
        if not state.exists():
            state.mkdir(mode=0o700)
            if self.prepared:
                prepare(state)
        daemon = daemon_at(
            state,
            self.outer.platform,
            self.outer.bridge,
            store=self.store,
            config=make_config(**self.config),
            sign_in=self.sign_in,
            sleep=unhurried_sleep,
        )
        context = served(daemon, state, port=port, clock=self.clock, sessions=PageSessions(self.clock))
        self.daemon = self._running.enter_context(context)
        return self.daemon

    def stop(self) -> None:
        self._running.close()
        # The fake belongs to the loop that it was used in.
        self.outer.bridge = FakeBridge()

    def until_state(self, psbt_id: str, *states: State) -> None:
        records = self.daemon.service.journal.records
        self.daemon.until(lambda: any(r.psbt_id == psbt_id and r.state in states for r in records()))

    # --- the browser ----------------------------------------------------------------------------------------

    @property
    def origin(self) -> str:
        return origin_of(self.daemon)

    def open_browser(self, *, seated: bool = True, **options: Any) -> BrowserContext:
        """One with a profile of its own; ``seated``: in which the page is open."""
        stored = seat(self.daemon) if seated else None
        usual = {"viewport": WIDE, "reduced_motion": "reduce", "storage_state": stored}
        context = self.browser.new_context(**{**usual, **options})
        self._windows.callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        watched = Complaints(self.origin)
        watched.watch(context)
        self.complaints.append(watched)
        return context

    def page(self, path: str = "/", **options: Any) -> Page:
        page = self.open_browser(**options).new_page()
        if options.get("seated", True):
            show(page, self.origin + path)
        else:
            page.goto(self.origin + path)
        return page

    def complained(self) -> list[str]:
        return [words for one in self.complaints for words in one.said if not words.startswith(self.forgiven)]

    def close(self) -> None:
        self._windows.close()
        self.stop()


@pytest.fixture
def make_desk(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Desks with a daemon that runs. No page of theirs may have given the browser reason to complain."""
    with ExitStack() as stack:
        made: list[Desk] = []

        def make(**changes: Any) -> Desk:
            folder = tmp_path / f"desk-{len(made)}"
            folder.mkdir()
            desk = Desk(browser, folder, changes.pop("outer", None) or make_outer(folder), **changes)
            made.append(desk)
            stack.callback(desk.close)
            desk.start()
            return desk

        yield make
        assert [words for desk in made for words in desk.complained()] == []


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    """With one honest proposal, "p-1", that waits."""
    made = make_desk()
    made.until_state("p-1", State.WAITING_PERSON)
    return made
