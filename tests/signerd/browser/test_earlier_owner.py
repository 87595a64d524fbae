"""L15: another user's program takes the port while signerd is down, and leaves in the person's browser all
that a server can. signerd comes back, and the person opens the page.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from signerd.core.states import State
from tests.support.browser import new_code
from tests.support.firefox import Firefox, Window, firefox
from tests.support.patience import PATIENCE

__all__ = ["firefox"]

# Approves in the session whose secret it sees, and answers with a page of its own.
WORKER = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
const approve = async (secret) => {
  const headers = { "X-Signerd-Session": secret, "Content-Type": "application/json" };
  const view = await (await fetch("/v1/proposals/p-1", { headers })).json();
  const acknowledged = view.checks.filter((one) => one.acknowledge).map((one) => one.name);
  const body = JSON.stringify({ digest: view.digest, acknowledged });
  await fetch("/v1/proposals/p-1/approve", { method: "POST", headers, body });
};
self.addEventListener("fetch", (event) => {
  const secret = event.request.headers.get("X-Signerd-Session");
  event.respondWith(secret ? approve(secret).then(() => fetch(event.request)) : fetch(event.request));
});
"""
SCRIPT = """
navigator.serviceWorker.register("/worker.js").then(
  () => fetch("/took?how=worker"), () => fetch("/took?how=script"));
localStorage.setItem("left", "theirs");
"""
MARK = "What the other program says"
DOCUMENT = f"<!doctype html><title>signerd</title><p>{MARK}</p><script src='/evil.js'></script>"
PART = f"<div id='review'><p>{MARK}</p><script src='/evil.js'></script><script>{SCRIPT}</script></div>"
LINE = json.dumps({"number": 10**6, "subject": "p-1", "kind": "alarm", "text": MARK})
FILES = {
    "/v1/events": (f"event: happened\ndata: {LINE}\n\n", "text/event-stream"),
    "/worker.js": (WORKER, "text/javascript"),
    "/evil.js": (SCRIPT, "text/javascript"),
}


class Handler(BaseHTTPRequestHandler):
    """Answers any host. To a page that is open: events that make it load its parts again, parts with scripts,
    and the order to go to a page with them.
    """

    server: "Taker"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.requested.append(self.path)
        if path == "/took":
            self.server.took.set()
        text, kind = FILES.get(path, (DOCUMENT, "text/html"))
        body = (PART if self.headers.get("HX-Request") is not None else text).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=31536000, immutable")
        if self.headers.get("HX-Request") is not None:
            self.send_header("HX-Redirect", "/")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.server.requested.append(self.path)
        self.send_error(HTTPStatus.FORBIDDEN)

    def log_message(self, *_args: object) -> None:
        pass


class Taker(ThreadingHTTPServer):
    """``took``: its script has run in the browser, and its worker is registered where that can be."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.requested: list[str] = []
        self.took = threading.Event()


@contextmanager
def another_program(port: int) -> Iterator[Taker]:
    with Taker(port) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield server
        finally:
            server.shutdown()


def leave_for(window: Window, address: str) -> None:
    """To what has no origin: `Firefox.go` waits for one."""
    if isinstance(window, Firefox):
        window.ask("WebDriver:Navigate", url=address)
    else:
        window.go(address)


def open_page(window: Window, desk, folder) -> None:
    """As `signerd open` does: by a form in a file."""
    action, code = f"{desk.origin}/enter", new_code(desk.daemon)
    form = folder / "open.html"
    form.write_text(f"<form method=post action={action}><input name=code value={code}><button>Open</button>")
    leave_for(window, form.as_uri())
    window.click("button")
    window.until("main", "Proposals")


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=pytest.mark.slow("the second browser"))])
def window(request, desk) -> Window:
    if request.param == "firefox":
        return request.getfixturevalue("firefox")
    return Window(desk.open_browser(seated=False).new_page())


@pytest.mark.parametrize("open_tab", [True, False], ids=["a tab stays open", "no tab"])
def test_l15_what_held_the_port_while_signerd_was_down_does_nothing_once_it_is_back(
    desk, tmp_path, window, open_tab
):
    desk.forgiven = ("",)
    port, page_before = desk.daemon.service.page_address.port, desk.origin
    bookmark = f"http://127.0.0.1:{port}/"
    open_page(window, desk, tmp_path)
    if open_tab:
        window.go(f"{page_before}/proposals/p-1")
        window.until("main", "Approve")
    else:
        leave_for(window, "about:blank")
    desk.stop()
    with another_program(port) as theirs:
        if open_tab:
            window.until("#connection", "Not connected: signerd was stopped")
            # A press that meets what has just moved does nothing (L17): the person presses again.
            for _ in range(2):
                window.click("#approve button")
            window.until("#approve .problem", "Nothing was sent")
            assert theirs.requested == []
        # A person who knows no better opens the addresses that they know.
        for address in (f"{page_before}/proposals/p-1", bookmark):
            window.go(address)
            assert theirs.took.wait(PATIENCE)
            theirs.took.clear()

    desk.start(port)
    desk.until_state("p-1", State.WAITING_PERSON)
    window.go(bookmark)
    open_page(window, desk, tmp_path)
    window.go(f"{desk.origin}/proposals/p-1")
    window.until("main", "Approve")
    assert MARK not in window.text("body")
    assert window.run("() => navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
    assert window.run("() => localStorage.getItem('left')") is None
    assert desk.outer.bridge.asked == 0
    desk.until_state("p-1", State.WAITING_PERSON)
