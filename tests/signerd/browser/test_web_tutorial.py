"""docs/build/tutorial-web.md: the page as it stands there, served and opened as the tutorial says."""

import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import expect

from signerd.core.states import State
from tests.support.pages import DOCS, command_lines

TUTORIAL = DOCS / "build" / "tutorial-web.md"


class Quiet(SimpleHTTPRequestHandler):
    """`python3 -m http.server`, without its log."""

    def log_message(self, *_given):
        pass


@pytest.fixture
def site(desk, tmp_path):
    """The origin of the tutorial's page."""
    (html,) = re.findall(
        r"^```html\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert "http://127.0.0.1:17707" in html
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text(html.replace("http://127.0.0.1:17707", desk.origin))
    serve = partial(Quiet, directory=tmp_path / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_page_is_let_in_and_shows_what_waits(desk, site):
    desk.until_state("p-1", State.WAITING_PERSON)
    page = desk.browser.new_page()
    page.goto(site)
    connect, said = page.get_by_role("button", name="Connect to signerd"), page.get_by_role("status")
    connect.click()
    expect(said).to_have_text("Failed to fetch")

    (line,) = [line for line in command_lines(TUTORIAL) if line.startswith("signerd pair")]
    command = line.replace("http://127.0.0.1:8000", site).split()[1:]
    state = ["--state", str(desk.daemon.state)]
    with subprocess.Popen(
        [sys.executable, "-m", "signerd", *state, *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as pair:  # fmt: skip
        desk.daemon.until(lambda: site in desk.daemon.service.apps.origins())
        connect.click()
        expect(said).to_contain_text("Type this in signerd: ")
        told, _ = pair.communicate(said.inner_text()[-6:] + "\n", timeout=90)
    assert pair.returncode == 0, told
    assert "What waits" in told
    expect(said).to_have_text("Proposals known here: 1")
    expect(page.get_by_role("listitem")).to_contain_text(": waiting-for-person")
    page.close()
