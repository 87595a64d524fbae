"""setup: nothing is asked while something is in the way, nothing is written before the first success, and a
wrong code is asked for again.
"""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from custody.common.terminal import Exit
from signerd import app
from signerd.account.config import load_config
from tests.support.command import signerd
from tests.support.daemons import hurried_sleep
from tests.support.fake_platform import EMAIL, OTP, PASSWORD

# It is one string, whatever is in it: it adds nothing to the file.
LABEL = 'My "T"\\ é y = 1'
CREDENTIALS = f"phrase\n{EMAIL}\n{PASSWORD}\n"


class _Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_args):
        pass


@contextmanager
def answering():
    """What the platform's address is: something answers there, with the time."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def url():
    with answering() as found:
        yield found


@pytest.fixture
def outer(outer, monkeypatch):
    """What signs in without a daemon reaches it, through the real client."""
    outside = partial(app.DaemonDependencies, transport=outer.platform.transport, sleep=hurried_sleep)
    monkeypatch.setattr(app, "DaemonDependencies", outside)
    return outer


@pytest.fixture
def state(tmp_path):
    return tmp_path / "s"


def options(url: str, secrets: str = "file") -> list[str]:
    return ["--platform", url, "--network", "regtest", "--secrets", secrets]


def test_what_is_needed_is_looked_at_then_the_person_is_asked_and_told_what_comes_next(state, outer, url):
    device = "trezor:udp:127.0.0.1:21324"
    more = ["--device", device, "--label", LABEL]
    ended = signerd("setup", *options(url), *more, state=state, typed=CREDENTIALS)
    for name in ("libraries", "permissions", "secrets", "platform", "clock"):
        assert f" {name} " in ended.out
    assert f"Signed in as {EMAIL}" in ended.out
    assert f"signerd --state {state} run" in ended.out
    written = load_config(state / "config.toml")
    assert (written.secrets.store, str(written.network)) == ("file", "regtest")
    assert (written.devices.endpoints, written.label) == ((device,), LABEL)
    assert (state / "config.toml").stat().st_mode & 0o777 == 0o600


def test_without_an_address_it_is_asked_for_and_later_not_again(state, outer, url):
    first = ["--network", "regtest", "--secrets", "file"]
    signerd("setup", *first, state=state, typed=f"{url}\n{CREDENTIALS}")
    assert load_config(state / "config.toml").platform.url == url
    assert signerd("setup", "--json", state=state, typed=CREDENTIALS).json["email"] == EMAIL


@pytest.mark.parametrize(
    ("where", "secrets", "told", "status"),
    [
        ("http://127.0.0.1:9", "file", "TROUBLE  platform", Exit.PLATFORM),
        (None, "keyring", "--secrets file", Exit.SIGNED_OUT),
    ],
    ids=["no platform", "no keyring"],
)
def test_with_trouble_nothing_is_asked_and_nothing_is_written(
    state, outer, url, monkeypatch, where, secrets, told, status
):
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    ended = signerd("setup", *options(where or url, secrets), state=state, typed="", ends=status)
    assert told in ended.out
    assert "Nothing was asked" in ended.out
    assert outer.platform.requests == []
    assert not (state / "config.toml").exists()


@pytest.mark.parametrize("command", ["login", "setup"])
def test_a_wrong_code_is_asked_for_again_and_a_failure_leaves_nothing(state, outer, url, command):
    outer.platform.two_factor = True
    wrong = signerd(
        command,
        *options(url),
        state=state,
        typed=f"{CREDENTIALS}000000\n111111\n222222\n{OTP}\n",
        ends=Exit.SIGNED_OUT,
    )
    assert wrong.err.count("OTP_INVALID") == 3
    # A folder with a journal is one that no backup is restored to.
    names = ("config.toml", "journal.sqlite3", "journal.born")
    assert not [name for name in names if (state / name).exists()]
    typed = f"phrase\n{EMAIL}\nwrong\n{EMAIL}\n{PASSWORD}\n000000\n{OTP}\n"
    assert signerd(command, *options(url), state=state, typed=typed).err.count("Once more, with both:") == 1
    assert [path for _verb, path in outer.platform.requests].count("/auth/login") == 3


def test_what_is_given_later_without_the_platform_is_refused_in_words_where_it_differs(state, outer, url):
    signerd("login", *options(url), state=state, typed=CREDENTIALS)
    outer.platform.requests.clear()
    for command, name, given, told in (
        ("login", "--secrets", "keyring", "has for --secrets: file, and not keyring"),
        ("setup", "--label", "Desk", "has for --label: signing device, and not Desk"),
        ("setup", "--network", "signet", "has for --network: regtest, and not signet"),
    ):
        assert told in signerd(command, name, given, state=state, typed=CREDENTIALS, ends=Exit.STATE).err
    assert outer.platform.requests == []
