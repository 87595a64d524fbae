"""pair, apps: against a real daemon. `signerd open`: the code gets to the browser in a file of this user's,
and nowhere else (L10; docs/sign/page.md).
"""

import re
import stat
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from custody.common.terminal import Exit
from signerd.cli import apps, desk
from tests.support.command import signerd
from tests.support.ported import ported, secret_in

SITE = "https://wallet.example"


@pytest.fixture
def daemon(new_desk):
    return new_desk


def ask(daemon, name="Ledger of Ours", rights=("read", "approve"), origin=None):
    return daemon.on_loop(partial(daemon.service.apps.ask, name, frozenset(rights), origin))


def collect(daemon, pairing):
    return daemon.on_loop(partial(daemon.service.apps.collect, pairing.id, pairing.secret))


def while_it_waits(monkeypatch, what):
    """Do it as soon as the command says that it waits."""

    def told(text=""):
        if text.startswith("Waiting for an app"):
            what()

    monkeypatch.setattr(desk, "say", told)


def test_the_person_sees_what_is_asked_types_the_code_and_takes_rights_away(daemon):
    pairing = ask(daemon)
    ended = signerd("pair", "--only", "read", "--days", "7", state=daemon.state, typed=f"{pairing.code}\n")
    for told in ("Ledger of Ours", "a program of this machine", "For 7 days", "Not granted: approve"):
        assert told in ended.out
    # The code is what the app shows: a command that showed it would be answered without looking.
    assert pairing.code not in ended.out
    collected = collect(daemon, pairing)
    assert (collected.state, collected.rights) == ("accepted", ("read",))
    listed = signerd("apps", state=daemon.state)
    assert collected.app_id in listed.out
    assert "never" in listed.out
    signerd("apps", "revoke", collected.app_id, state=daemon.state)
    assert signerd("apps", state=daemon.state).out.splitlines() == [
        "No app is paired. Let one in with `signerd pair`.",
        "Revoked or expired: 1. `signerd apps --all` shows them.",
    ]
    (revoked,) = signerd("apps", "--all", "--json", state=daemon.state).json
    assert (revoked["id"], revoked["state"]) == (collected.app_id, "revoked")
    assert f"revoked {revoked['revoked']}" in signerd("apps", "--all", state=daemon.state).out


def test_l13_a_yes_is_taken_back_until_the_app_has_its_token(daemon):
    pairing = ask(daemon, "Late")
    ended = signerd("pair", "--code", pairing.code, state=daemon.state)
    take_back = f"`signerd pair {pairing.id} --refuse` takes it back."
    assert ended.out.splitlines()[-1].endswith(take_back)
    words = "approve and decline payments in your name, without asking you: then only your device"
    assert words in ended.out
    listed = signerd("apps", state=daemon.state).out
    assert "'Late' (a program of this machine) was let in and has not fetched its token." in listed
    assert take_back in listed
    assert signerd("apps", "--json", state=daemon.state).json == []
    # Letting another app in is not about it.
    other = ask(daemon, "Other")
    signerd("pair", "--code", other.code, state=daemon.state)
    signerd("pair", pairing.id[:4], "--refuse", state=daemon.state)
    assert collect(daemon, pairing).state == "refused"
    assert collect(daemon, other).state == "accepted"


def test_it_waits_for_an_app_that_asks_and_for_none_of_another_site(daemon, monkeypatch):
    asked = []

    def both():
        asked.append(ask(daemon, "Other"))
        asked.append(ask(daemon, "Wallet", ("read",), SITE))

    while_it_waits(monkeypatch, both)
    signerd("pair", "--origin", f"{SITE}/", state=daemon.state, typed="no\n", ends=Exit.DECLINED)
    assert [collect(daemon, one).state for one in asked] == ["waiting", "refused"]
    signerd("apps", "shut-out", SITE, state=daemon.state)


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
    assert browser.modes == [0o600]
    assert browser.opened[0].startswith(runtime.as_uri())
    assert list(runtime.iterdir()) == []
    assert not CODE.search(ended.out + ended.err + browser.opened[0])
    assert port.ask("GET", "/v1/devices", {"X-Signerd-Session": browser.secret}).status == 200


def test_an_unused_file_is_removed_when_it_expires(port, runtime, monkeypatch):
    monkeypatch.setattr(apps.webbrowser, "open", Browser(port, posts=False).open)
    monkeypatch.setattr("signerd.loopback.answers.ENTRY_SECONDS", 0)
    assert "--print" in signerd("open", state=port.daemon.state, ends=Exit.FAILED).err
    assert list(runtime.iterdir()) == []


def test_a_code_to_type_for_a_browser_elsewhere_and_one_for_a_program(port):
    ended = signerd("open", "--print", state=port.daemon.state)
    assert f"{port.origin}/" in ended.out
    assert f"-L {port.number}:127.0.0.1:{port.number}" in ended.out
    assert port.enter(CODE.search(ended.out)[0]).status == 200
    answer = signerd("open", "--json", state=port.daemon.state).json
    assert (answer["url"], answer["seconds"]) == (f"{port.origin}/", 30)
    assert port.enter(answer["code"]).status == 200


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all", "loose"])
def test_l12_a_folder_that_is_not_ours_alone_gets_no_file(tmp_path, monkeypatch, folder):
    if folder == "loose":
        folder = tmp_path / "loose"
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert apps._folder(tmp_path / "s") == tmp_path / "s"
