"""Debian's Firefox under test, and a page of Chromium with the same few methods.

It is driven by Marionette, Firefox's own protocol for WebDriver: Playwright needs its own builds, or a
Firefox newer than Debian's.
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Frame, Page

from tests.support.browser import PATIENCE_MS, REBOUND, require_browser

FIREFOX = Path("/usr/bin/firefox-esr")
_SETTINGS = {"marionette.port": 0, "network.dns.localDomains": REBOUND}
_PORT = "MarionetteActivePort"
_PATIENCE = PATIENCE_MS / 1000


@dataclass
class Window:
    """A page of Chromium, addressed by CSS selectors."""

    page: Page | Frame

    def go(self, url: str) -> None:
        self.page.goto(url)

    def run(self, script: str, *given: Any) -> Any:
        """The result of a JavaScript function, which may be async."""
        return self.page.evaluate(f"given => ({script})(...given)", list(given))

    def evaluate(self, script: str, given: Any) -> Any:
        """Like Playwright's ``Page.evaluate``."""
        return self.run(script, given)

    def click(self, selector: str) -> None:
        self.page.locator(selector).click()

    def type(self, selector: str, text: str) -> None:
        self.page.locator(selector).fill(text)

    def bring(self, selector: str, file: Path) -> None:
        self.page.locator(selector).set_input_files(file)

    def text(self, selector: str) -> str:
        """Empty while another document replaces this one."""
        try:
            return str(self.run(_TEXT, selector) or "")
        except Error as error:
            if "context was destroyed" not in str(error):
                raise
            return ""

    def until(self, selector: str, words: str) -> str:
        """Waits until its text contains ``words``; returns the text."""
        deadline = time.monotonic() + _PATIENCE
        while words not in (said := self.text(selector)):
            assert time.monotonic() < deadline, f"{selector} says: {said}"
            self.pause()
        return said

    def pause(self) -> None:
        self.page.wait_for_timeout(50)

    @contextmanager
    def beside(self) -> Iterator["Window"]:
        """Another window of the same browser, closed at the end."""
        assert isinstance(self.page, Page)
        page = self.page.context.new_page()
        yield Window(page)
        page.close()

    def frame(self) -> "Window":
        """The page's only frame."""
        (frame,) = self.page.child_frames if isinstance(self.page, Frame) else self.page.frames[1:]
        return Window(frame)

    def address_in(self, selector: str) -> str:
        """The address that a frame shows: the browser's own for an error page."""
        element = self.page.query_selector(selector)
        assert element is not None
        frame = element.content_frame()
        assert frame is not None
        return frame.url


_TEXT = """selector => {
    const one = document.querySelector(selector);
    return one?.value ?? one?.textContent ?? "";
}"""


@dataclass
class Firefox(Window):
    """Firefox, with one window at a time."""

    page: Any = None
    connection: socket.socket = field(kw_only=True)
    _asked: int = 0

    def go(self, url: str) -> None:
        self.ask("WebDriver:Navigate", url=url)
        # Another site loads in another process: for a moment the previous page still answers.
        deadline = time.monotonic() + _PATIENCE
        while not self.run("url => location.origin === new URL(url).origin", url):
            assert time.monotonic() < deadline, f"Firefox does not come to {url}"
            self.pause()

    def run(self, script: str, *given: Any) -> Any:
        body = (
            "const done = arguments[arguments.length - 1];"
            f"Promise.resolve().then(() => ({script})(...[...arguments].slice(0, -1)))"
            ".then((found) => done([true, found ?? null]), (error) => done([false, String(error)]))"
        )
        answer = self.ask("WebDriver:ExecuteAsyncScript", script=body, args=list(given))["value"]
        if answer is None:
            # The document was replaced.
            return None
        worked, found = answer
        assert worked, found
        return found

    def click(self, selector: str) -> None:
        self.ask("WebDriver:ElementClick", id=self._element(selector))

    def type(self, selector: str, text: str) -> None:
        element = self._element(selector)
        self.ask("WebDriver:ElementClear", id=element)
        self.ask("WebDriver:ElementSendKeys", id=element, text=text)

    def bring(self, selector: str, file: Path) -> None:
        self.ask("WebDriver:ElementSendKeys", id=self._element(selector), text=str(file))

    def pause(self) -> None:
        time.sleep(0.05)

    def frame(self) -> "Firefox":
        self.ask("WebDriver:SwitchToFrame", element=self._element("iframe"))
        return self

    def address_in(self, selector: str) -> str:
        self.ask("WebDriver:SwitchToFrame", element=self._element(selector))
        address = self.run("() => document.documentURI")
        self.ask("WebDriver:SwitchToFrame", id=None)
        return str(address)

    @contextmanager
    def beside(self) -> Iterator["Firefox"]:
        here = self.ask("WebDriver:GetWindowHandle")["value"]
        self._switch(self.ask("WebDriver:NewWindow", type="tab")["handle"])
        try:
            yield self
        finally:
            self.ask("WebDriver:CloseWindow")
            self._switch(here)

    def ask(self, command: str, **given: Any) -> Any:
        """Raises AssertionError where Firefox answers with an error."""
        self._asked += 1
        said = json.dumps([0, self._asked, command, given]).encode()
        self.connection.sendall(b"%d:%s" % (len(said), said))
        _kind, number, error, answer = self.hear()
        assert (number, error) == (self._asked, None), error
        return answer

    def hear(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            length += self._bytes(1)
        return json.loads(self._bytes(int(length[:-1])))

    def _bytes(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self.connection.recv(count - len(found))
            assert part, "Firefox has gone"
            found += part
        return found

    def _element(self, selector: str) -> str:
        found = self.ask("WebDriver:FindElement", using="css selector", value=selector)["value"]
        (element,) = found.values()
        return str(element)

    def _switch(self, handle: str) -> None:
        self.ask("WebDriver:SwitchToWindow", handle=handle)


@contextmanager
def started(profile: Path) -> Iterator[Firefox]:
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _SETTINGS.items()]
    (profile / "user.js").write_text("\n".join(lines))
    command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", profile]
    environment = {**os.environ, "MOZ_CRASHREPORTER_DISABLE": "1"}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **silent) as process:
        try:
            deadline, port = time.monotonic() + _PATIENCE, profile / _PORT
            while not (port.exists() and port.read_text().strip()):
                assert process.poll() is None, "Firefox has ended"
                assert time.monotonic() < deadline, "Firefox does not start"
                time.sleep(0.05)
            with socket.create_connection(("127.0.0.1", int(port.read_text())), _PATIENCE) as connection:
                found = Firefox(connection=connection)
                found.hear()
                found.ask("WebDriver:NewSession", capabilities={"timeouts": {"script": PATIENCE_MS}})
                yield found
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    require_browser(FIREFOX)
    with started(tmp_path_factory.mktemp("firefox")) as found:
        yield found
