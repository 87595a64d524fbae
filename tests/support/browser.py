"""Debian's Chromium in a test's hands: one process of it for each of pytest's,
and what it complained about.
"""

import asyncio
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.support.examples import drawn
from tests.support.ported import exchange, read_answer, secret_in
from tests.support.served import Served

CHROMIUM = Path("/usr/bin/chromium")
# The same engine without windows, which takes a third less of the processor. It knows no camera.
HEADLESS_SHELL = Path("/usr/bin/chromium-headless-shell")
# Set where a run without a browser must not look like one with it.
REQUIRED = "SIGNERD_REQUIRE_BROWSERS"
# A folder: every page is drawn into it.
SCREENSHOTS = "SIGNERD_SCREENSHOTS"
# A name that leads to this machine, as an attacker's does once it was bound anew (L1).
REBOUND = "evil.example"
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)
# How Chromium and htmx note that an answer was a refusal;
# the page's own words for it are what the tests look at.
REFUSALS = (
    "Failed to load resource: the server responded with a status of 4",
    "Response Status Error Code 4",
)
# Two busy cores: what a person sees at once may take this long.
PATIENCE_MS = 90_000
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# What people of different sight, hands and tools are promised:
# the parts of WCAG 2.1 that a program can judge.
STANDARDS = ["wcag2a", "wcag2aa", "wcag21aa"]


def require_browser(at: Path = CHROMIUM) -> None:
    """Skips, or fails where it is required."""
    if at.exists():
        return
    words = f"no browser at {at}"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(words)
    pytest.skip(words)


@dataclass
class Chromium:
    """``loop``: playwright's. It stands still between two calls, and asyncio takes it for one that runs."""

    browser: Browser
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        """Other tests of this process run loops of their own:
        playwright's is out of their way outside of this.
        """
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(None)


@contextmanager
def filming(chromium: Chromium, film: Path) -> Iterator[Browser]:
    """Another process of it, whose camera sees this film, over and over."""
    camera = ("--use-fake-device-for-media-stream", f"--use-file-for-fake-video-capture={film}")
    with chromium.in_use() as found:
        kind = found.browser_type
        browser = kind.launch(executable_path=str(CHROMIUM), args=[*ARGUMENTS, *camera])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def launched() -> Iterator[Chromium]:
    with sync_playwright() as playwright:
        program = HEADLESS_SHELL if HEADLESS_SHELL.exists() else CHROMIUM
        browser = playwright.chromium.launch(executable_path=str(program), args=list(ARGUMENTS))
        found = Chromium(browser, asyncio.get_running_loop())
        expect.set_options(timeout=PATIENCE_MS)
        asyncio._set_running_loop(None)
        try:
            yield found
        finally:
            asyncio._set_running_loop(found.loop)
            browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    require_browser()
    with launched() as found:
        yield found


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Browser]:
    with chromium.in_use() as found:
        yield found


@dataclass
class Complaints:
    """What a browser said against the pages of one context: errors of scripts,
    breaches of the policy, calls elsewhere.
    """

    of: str
    said: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self.said.append(f"script: {error.error}"))
        context.on("request", lambda request: self._request(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(REFUSALS):
            self.said.append(f"console: {message.text}")
        elif "Content Security Policy" in message.text:
            self.said.append(f"policy: {message.text}")

    def _request(self, url: str) -> None:
        if not url.startswith((self.of, "data:", "file:", "about:", "blob:")):
            self.said.append(f"elsewhere: {url}")


def origin_of(served: Served) -> str:
    url = served.service.page_address.url
    assert url is not None
    return str(url).rstrip("/")


def new_code(served: Served) -> str:
    with served.client() as client:
        return client.enter_page().code


def seat(served: Served) -> dict[str, Any]:
    """What a browser has stored in which a session of the page began, as by `signerd open`:
    playwright's ``storage_state``.
    """
    port = served.service.page_address.port
    body = f"code={new_code(served)}"
    head = (
        f"POST /enter HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: null\r\nConnection: close\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    answer = read_answer(exchange(port, (head + body).encode()))
    stored = [{"name": "signerd-session", "value": secret_in(answer)}]
    return {"cookies": [], "origins": [{"origin": origin_of(served), "localStorage": stored}]}


def show(page: Page, url: str) -> None:
    """Go there in a browser with a session, and wait until the page has come with it."""
    page.goto(url)
    # The script of entry writes the page into the document that was loaded:
    # its scripts run after that one's load event.
    expect(page.locator("script[src='/static/enter.js']")).to_have_count(0)
    until_true(page, "document.readyState === 'complete' && 'htmx' in window")


def until_true(page: Page, expression: str) -> None:
    """Wait for what no element shows. The page's own policy forbids ``wait_for_function``,
    which compiles text.
    """
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


@cache
def _axe() -> str:
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    """What axe finds on the page as it stands.

    It comes by the debugger: the page's own policy lets no script in.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    only = {"type": "tag", "values": STANDARDS}
    found = page.evaluate(f"axe.run({json.dumps({'runOnly': only, 'resultTypes': ['violations']})})")
    return [
        f"{one['id']}: {node['html'][:160]} ({node['failureSummary']})"
        for one in found["violations"]
        for node in one["nodes"]
    ]


# How far what stood on a page has moved under a reader who did nothing: the Layout Instability API's sum.
FOLLOW_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((seen) => {
  for (const each of seen.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
}).observe({ type: "layout-shift", buffered: true });
"""
MOST_SHIFTED = 0.01


def shifts(page: Page) -> list[str]:
    """What `FOLLOW_SHIFTS`, run before the page's own scripts, has seen since the page was opened."""
    moved = page.evaluate("window.shifted")
    width = page.viewport_size["width"]
    return [f"its layout has shifted by {moved:.3f}, at {width} pixels"] if moved > MOST_SHIFTED else []


def judge(page: Page, name: str) -> list[str]:
    """What is wrong with the page at both widths, one light and one dark, as the run draws: colours take axe
    four fifths of its time. Pictures are made of all four.
    """
    found = []
    for pair in drawn([("light", "dark"), ("dark", "light")], 1, of=name):
        for (width, size), scheme in zip((("1280", WIDE), ("360", NARROW)), pair, strict=True):
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            found += [f"{name} {width} {scheme}: {one}" for one in violations(page)]
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > size["width"]:
                found.append(f"{name} {width}: {wide} pixels wide")
            draw(page, f"{name}-{width}", pair)
    return found


def draw(page: Page, name: str, schemes: Iterable[str]) -> None:
    """Saves pictures of the whole page, if the environment names a folder for them."""
    folder = os.environ.get(SCREENSHOTS)
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=Path(folder) / f"{name}-{scheme}.png", full_page=True)
