"""A served platform with the desk's data, and people's browsers at its console."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import (
    FOLLOW_SHIFTS,
    NARROW,
    PATIENCE_MS,
    WIDE,
    Complaints,
    browser,
    chromium,
    judge,
    shifts,
)
from tests.support.console import Visitor, served_app
from tests.support.custody import Desk
from tests.support.examples import drawn

__all__ = ["browser", "chromium"]


def heading(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1, name=words)).to_be_visible()


@dataclass
class Window:
    """``desk``: the platform, with an administrator, three signers and a vault. ``forgiven``: how complaints
    begin that a test brings about on purpose.
    """

    browser: Browser
    desk: Desk
    origin: str
    forgiven: tuple[str, ...] = ()
    complaints: list[Complaints] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)

    @property
    def here(self) -> str:
        """The path of the desk's workspace."""
        return f"/console/w/{self.desk.workspace_id}"

    def page(self, path: str = "/console/", *, person: str | None = "admin", **options: Any) -> Page:
        """In a browser of its own in which that person is signed in; None: who is not. The run draws its
        width.
        """
        width, *_ = drawn((WIDE, NARROW), 1, of=path)
        usual = {"viewport": width, "reduced_motion": "reduce", "base_url": self.origin}
        context = self.browser.new_context(**{**usual, **options})
        self._open.callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(FOLLOW_SHIFTS)
        if person is not None:
            context.add_cookies(self._seat(person))
        watched = Complaints(self.origin)
        watched.watch(context)
        self.complaints.append(watched)
        page = context.new_page()
        page.goto(path)
        return page

    def follow(self, target: Locator) -> None:
        """Clicks what leads to another page, and waits for that one."""
        with target.page.expect_navigation():
            target.click()

    def judge(self, page: Page, name: str) -> None:
        """Notes what has shifted since the page was opened, what axe finds and what is too wide, at both
        widths, light and dark, and draws it. The next page is opened at the other width: what shifts is seen
        where a page is laid out first.
        """
        # A heading can be there before the style sheet is.
        page.wait_for_load_state()
        opened = page.viewport_size
        self.faults += [f"console-{name}: {words}" for words in shifts(page)]
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        self.faults += judge(page, f"console-{name}")
        page.set_viewport_size(NARROW if opened == WIDE else WIDE)
        page.emulate_media(color_scheme="light")

    def complained(self) -> list[str]:
        said = [words for one in self.complaints for words in one.said]
        return [words for words in said if not words.startswith(self.forgiven)]

    def _seat(self, person: str) -> Any:
        """The cookies of a sign-in, without drawing it."""
        with httpx.Client(base_url=self.origin) as http:
            Visitor(http).sign_in(f"{person}@example.org")
            return [
                {
                    "name": one.name,
                    "value": one.value,
                    "url": self.origin,
                    "httpOnly": one.has_nonstandard_attr("HttpOnly"),
                    "sameSite": (one.get_nonstandard_attr("SameSite") or "none").capitalize(),
                }
                for one in http.cookies.jar
            ]


@pytest.fixture
def window(browser: Browser, desk: Desk) -> Iterator[Window]:
    """Fails where a browser complained or a page had a fault."""
    with served_app(desk.world.platform.asgi) as origin, ExitStack() as stack:
        made = Window(browser, desk, origin)
        stack.callback(made._open.close)
        yield made
        assert made.complained() == []
        assert made.faults == []
