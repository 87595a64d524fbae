"""Another site's server on this machine: empty pages from which a test sends requests as that site."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page

from tests.support.background import answering
from tests.support.browser import REBOUND
from tests.support.firefox import Window

# Another port is another origin of the same site.
NAMES = ("127.0.0.1", "localhost", REBOUND)
# Outcomes of attempts that failed.
NOTHING = frozenset({"refused", "opaque", "sent"})
_PAGE = (
    b"<!doctype html><meta charset='utf-8'><title>Another site</title>"
    b"<link rel='icon' href='data:,'><body></body>"
)


class OtherOrigin(ThreadingHTTPServer):
    """``heard``: the headers of each request. ``plants``: cookies that each answer sets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: list[dict[str, str]] = []
        self.plants: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: OtherOrigin

    def do_GET(self) -> None:
        self.server.heard.append(dict(self.headers.items()))
        self.send_response(200)
        for cookie in self.server.plants:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def another_site() -> Iterator[OtherOrigin]:
    """Serves any host name that resolves to this machine."""
    server = OtherOrigin()
    with answering(server):
        yield server


def attempts_of(page: Page | Window, beside: str, *given: object) -> dict[str, str]:
    """The outcome of each attempt in the ``hostile.js`` beside that file, by name. Raises AssertionError
    where a page that may be framed is not shown.
    """
    scripts = [Path(__file__).with_name("hostile.js"), Path(beside).with_name("hostile.js")]
    script = "\n".join(each.read_text() for each in scripts)
    found: dict[str, str] = page.evaluate(f"given => {{ {script}; return attack(...given) }}", list(given))
    window = page if isinstance(page, Window) else Window(page)
    for name, what in found.items():
        if what.startswith("frame-"):
            shown = window.address_in(f"iframe[name={what}]")
            found[name] = f"framed {shown}" if shown.startswith("http") else "refused"
    assert found.pop("a page that may be framed", "framed ").startswith("framed ")
    return found
