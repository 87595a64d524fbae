"""`signerd open`: the code gets to the browser in a file of this user's, and nowhere else (L10)."""

import re
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from signerd.cli import apps
from signerd.cli.terminal import Exit
from tests.support.command import signerd
from tests.support.ported import ported, secret_in
from tests.support.served import served_script

CODE = re.compile(r"[0-9A-Z]{5}-[0-9A-Z]{5}")


@pytest.fixture
def port(tmp_path):
    with ported(tmp_path / "s", devices=()) as found:
        yield found


@pytest.fixture(autouse=True)
def runtime(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


class Browser:
    """Reads the file that it is given, and posts its form where ``posts``."""

    def __init__(self, port, *, posts: bool = True) -> None:
        self.port, self.posts = port, posts
        self.opened: list[str] = []
        self.modes: list[int] = []
        self.secret = ""

    def open(self, url: str) -> bool:
        self.opened.append(url)
        path = Path(unquote(urlsplit(url).path))
        self.modes.append(stat.S_IMODE(path.stat().st_mode))
        text = path.read_text()
        assert f'action="{self.port.origin}/enter"' in text
        assert "<button" in text
        if self.posts:
            self.secret = secret_in(self.port.enter(CODE.search(text)[0]))
        return True


def test_l10_the_browser_gets_a_private_file_which_is_gone_when_the_page_was_entered(
    port, runtime, monkeypatch
):
    browser = Browser(port)
    monkeypatch.setattr(apps.webbrowser, "open", browser.open)
    ended = signerd("open", state=port.daemon.state)
    assert ended.status == Exit.OK, ended.err
    assert browser.modes == [0o600]
    assert browser.opened[0].startswith(runtime.as_uri())
    assert list(runtime.iterdir()) == []
    assert not CODE.search(ended.out + ended.err + browser.opened[0])
    assert port.ask("GET", "/v1/devices", {"X-Signerd-Session": browser.secret}).status == 200


def test_a_file_that_nobody_used_is_gone_when_its_time_is_over(port, runtime, monkeypatch):
    monkeypatch.setattr(apps.webbrowser, "open", Browser(port, posts=False).open)
    monkeypatch.setattr("signerd.loopback.endpoints.ENTRY_SECONDS", 0)
    ended = signerd("open", state=port.daemon.state)
    assert ended.status == Exit.FAILED
    assert "--print" in ended.err
    assert list(runtime.iterdir()) == []


def test_without_a_browser_it_says_what_else_to_do(port, runtime, monkeypatch):
    monkeypatch.setattr(apps.webbrowser, "open", lambda _url: False)
    ended = signerd("open", state=port.daemon.state)
    assert ended.status == Exit.FAILED
    assert "signerd open --print" in ended.err
    assert list(runtime.iterdir()) == []


def test_a_code_to_type_for_a_browser_elsewhere(port):
    ended = signerd("open", "--print", state=port.daemon.state)
    assert f"{port.origin}/" in ended.out
    assert f"-L {port.number}:127.0.0.1:{port.number}" in ended.out
    assert port.enter(CODE.search(ended.out)[0]).status == 200


def test_a_code_for_a_program(port):
    answer = signerd("open", "--json", state=port.daemon.state).json
    assert (answer["url"], answer["seconds"]) == (f"{port.origin}/", 30)
    assert port.enter(answer["code"]).status == 200


def test_where_the_page_is_not_served_it_says_so(tmp_path):
    with served_script(tmp_path / "s") as daemon:
        ended = signerd("open", state=daemon.state)
    assert ended.status == Exit.FAILED
    assert "signerd status" in ended.err


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all", "loose"])
def test_l12_a_folder_that_is_not_ours_alone_gets_no_file(tmp_path, monkeypatch, folder):
    if folder == "loose":
        folder = tmp_path / "loose"
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert apps._folder(tmp_path / "s") == tmp_path / "s"
