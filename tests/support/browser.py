"""Debian's Chromium under test: one browser for each pytest process, and its complaints."""

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

from tests.support.examples import IS_FULL, drawn
from tests.support.ported import exchange, read_answer, secret_in
from tests.support.served import Served

CHROMIUM = Path("/usr/bin/chromium")
# The same engine without windows: a third less processor time. It has no camera.
HEADLESS_SHELL = Path("/usr/bin/chromium-headless-shell")
# Where it is set, a missing browser fails the run.
REQUIRED = "SIGNERD_REQUIRE_BROWSERS"
# A folder for screenshots of every page.
SCREENSHOTS = "SIGNERD_SCREENSHOTS"
# A name that resolves to this machine, as an attacker's does after DNS rebinding (L1).
REBOUND = "evil.example"
WITHOUT = ("gpu", "quic", "background-networking", "component-update", "sync")
ARGUMENTS = ("--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{each}" for each in WITHOUT))
ARGUMENTS += (f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",)
# How Chromium and htmx log a refusal;
# the tests look at what the page says.
REFUSALS = (
    "Failed to load resource: the server responded with a status of 4",
    "Response Status Error Code 4",
)
# What a person sees at once may take this long on two busy cores.
PATIENCE_MS = 90_000
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# The parts of WCAG 2.1 that a program can check.
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
    """``loop``: playwright's. It is paused between two calls, but asyncio takes it for a running one."""

    browser: Browser
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        """Makes playwright's loop the running one; outside of this, other tests run loops of their own."""
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(None)


@contextmanager
def filming(chromium: Chromium, film: Path) -> Iterator[Browser]:
    """Another browser process, whose camera plays this film in a loop."""
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
    """What a browser reported about the pages of one context: script errors,
    violations of the content security policy, requests to other hosts.
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
    url = served.service.page_address.page_url
    assert url is not None, served.service.page_address.notes
    return str(url).rstrip("/")


def new_code(served: Served) -> str:
    with served.client() as client:
        return client.enter_page().code


def seat(served: Served) -> dict[str, Any]:
    """Playwright's ``storage_state`` of a browser with a session of the page, as after `signerd open`."""
    at = served.service.page_address
    body = f"code={new_code(served)}"
    head = (
        f"POST /enter HTTP/1.1\r\nHost: {at.name}:{at.port}\r\nOrigin: null\r\nConnection: close\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    answer = read_answer(exchange(at.port, (head + body).encode()))
    stored = [{"name": "signerd-session", "value": secret_in(answer)}]
    return {"cookies": [], "origins": [{"origin": origin_of(served), "localStorage": stored}]}


def show(page: Page, url: str) -> None:
    """Opens the page in a browser with a session, and waits until it has loaded."""
    page.goto(url)
    # The entry script replaces the loaded document: the page's own scripts run after its load event.
    expect(page.locator("script[src='/static/enter.js']")).to_have_count(0)
    until_true(page, "document.readyState === 'complete' && 'htmx' in window")


def until_true(page: Page, expression: str) -> None:
    """Waits for what no element shows. The page's content security policy forbids ``wait_for_function``,
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
    """What axe finds on the page.

    axe is injected through the debugger: the page's content security policy allows no other script.
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


# The sum of layout shifts without user input (Layout Instability API).
FOLLOW_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((seen) => {
  for (const each of seen.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
}).observe({ type: "layout-shift", buffered: true });
"""
MOST_SHIFTED = 0.01


def shifts(page: Page) -> list[str]:
    """The layout shifts since the page was opened, if `FOLLOW_SHIFTS` ran before the page's own scripts."""
    moved = page.evaluate("window.shifted")
    width = page.viewport_size["width"]
    return [f"its layout has shifted by {moved:.3f}, at {width} pixels"] if moved > MOST_SHIFTED else []


def judge(page: Page, name: str) -> list[str]:
    """What is wrong with the page at both widths, one of them light and one dark, which the run draws:
    colours take axe four fifths of its time. It looks at both in a full run, else at one. Screenshots are
    made of all four.
    """
    found = []
    for pair in drawn([("light", "dark"), ("dark", "light")], 1, of=name):
        ways = list(zip((("1280", WIDE), ("360", NARROW)), pair, strict=True))
        looked_at = ways if IS_FULL else drawn(ways, 1, of=f"axe at {name}")
        for (width, size), scheme in ways:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            if ((width, size), scheme) in looked_at:
                found += [f"{name} {width} {scheme}: {one}" for one in violations(page)]
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > size["width"]:
                found.append(f"{name} {width}: {wide} pixels wide")
            draw(page, f"{name}-{width}", pair)
    return found


def draw(page: Page, name: str, schemes: Iterable[str]) -> None:
    """Saves screenshots of the whole page, if the environment names a folder for them."""
    folder = os.environ.get(SCREENSHOTS)
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=Path(folder) / f"{name}-{scheme}.png", full_page=True)
