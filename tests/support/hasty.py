"""A user in a hurry (L17): presses each button twice, where it was, whatever has come there meanwhile.

The answer to the first press is the worst that a page could become: one button all over it.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from playwright.sync_api import Error, Locator, Page, Request, Route

from tests.support.browser import until_true
from tests.support.patience import PATIENCE

WIDTHS = (360, 768, 1280, 1440)
BUTTONS = "form[method=post] button:not([type=button]):visible:enabled, summary:visible"
_TRAP = (
    '<form method="post" action="/trap" hx-post="/trap">'
    '<button class="trap" data-number="{}">Act</button></form>'
)
_ALL_OVER = ".trap { position: fixed; inset: 0; width: 100vw; height: 100vh; z-index: 99 }"
# Says whether a press sends something, before it is on its way.
_COUNT = """window.sends = 0;
addEventListener("submit", (event) => {
  if (!event.defaultPrevented || event.target.hasAttribute("hx-post")) window.sends += 1;
});"""
_PREPARE = f"""(text) => {{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [sheet];
  for (const form of document.forms) form.noValidate = true;
  {_COUNT}
}}"""
# The page's clock stands while both presses are made, so that on a slow machine a user is fast, too.
_MS = 1000


class Hasty:
    """``scripts``: the folder of the page's scripts, in its addresses."""

    def __init__(self, page: Page, scripts: str) -> None:
        self._page = page
        self._scripts = scripts
        self._now = 1_800_000_000 * _MS
        self._sent: list[str] = []
        # Whether what was sent last asked for a part of the page.
        self._of_part = False
        page.route(lambda _url: True, self._answer)

    def presses(self, path: str, show: Callable[[], object]) -> Iterator[str]:
        """What is wrong with each button of the page that ``show`` opens."""
        show()
        for number in range(self._page.locator(BUTTONS).count()):
            if number:
                show()
            button = self._page.locator(BUTTONS).nth(number)
            if button.count():
                name = button.inner_text()
                yield from (f"{path} '{name}': {fault}" for fault in self._twice(button))

    def _twice(self, button: Locator) -> Iterator[str]:
        page = self._page
        self._sent.clear()
        self._pass(10)
        page.evaluate(_PREPARE, _ALL_OVER)
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self._after(lambda: page.mouse.click(*at))
        # Some answers are shown nowhere.
        trap = page.locator("button.trap")
        is_trapped = trap.count() > 0 and trap.first.is_visible()
        self._after(lambda: page.mouse.click(*at, click_count=2))
        if len(self._sent) > 1:
            yield f"twice is {self._sent}"
        elif is_trapped:
            # A second later it is a press like any other.
            self._pass(1.1)
            self._after(lambda: page.mouse.click(*at))
            if self._sent[1:] != ["/trap"]:
                yield f"later is {self._sent}"

    def _after(self, press: Callable[[], None]) -> None:
        """Waits for the answer to what it sends."""
        expected = len(self._sent)
        press()
        # An answer's document that is there already begins to count anew.
        with contextlib.suppress(Error):
            expected += self._page.evaluate(
                "() => { const all = window.sends; window.sends = 0; return all }"
            )
        deadline = time.monotonic() + PATIENCE
        while len(self._sent) < expected:
            assert time.monotonic() < deadline, self._sent
            self._page.wait_for_timeout(20)
        if self._of_part:
            until_true(self._page, "!document.querySelector('.htmx-request, .htmx-settling, .htmx-added')")
        elif self._sent:
            self._page.locator(f"button.trap[data-number='{len(self._sent)}']").wait_for()
            # Its deferred script has run by then.
            self._page.wait_for_load_state("load")

    def _pass(self, seconds: float) -> None:
        self._now += int(seconds * _MS)
        self._page.clock.set_fixed_time(self._now)

    def _answer(self, route: Route, request: Request) -> None:
        if request.method != "POST":
            route.fallback()
            return
        self._sent.append(urlsplit(request.url).path)
        self._of_part = request.headers.get("hx-request") is not None
        trap = _TRAP.format(len(self._sent))
        if self._of_part:
            route.fulfill(body=trap, content_type="text/html")
            return
        head = f"<style>{_ALL_OVER}</style><script>{_COUNT}</script>"
        head += f"<script src='{self._scripts}/press.js' defer></script>"
        route.fulfill(body=f"<!doctype html><title>.</title>{head}{trap}", content_type="text/html")
