"""setup, login, logout: nothing is asked while something is in the way, nothing is written before the first
success, a wrong code is asked for again, and what is secret is typed and not shown (docs/sign/accounts.md).
"""

import json
import socket
from email.utils import formatdate
from functools import partial

import pytest

from custody.common.terminal import Exit
from signerd.account import session
from signerd.account.config import load_config
from signerd.cli.foreground import SetupOptions, config_for
from signerd.errors import AlreadyConfigured
from signerd.runtime import DaemonDependencies
from signerd.shapes import Status
from tests.support.command import signerd
from tests.support.daemons import MemoryStore, hurried_sleep
from tests.support.desk import open_journal
from tests.support.dripping import listening_for
from tests.support.fake_platform import EMAIL, OTP, PASSWORD, URL
from tests.support.served import served_daemon

# It is one string, whatever is in it: it adds nothing to the file.
LABEL = 'My "T"\\ é y = 1'
CREDENTIALS = f"phrase\n{EMAIL}\n{PASSWORD}\n"


def answer(line: socket.socket) -> None:
    with line:
        line.recv(65536)
        line.sendall(
            f"HTTP/1.1 404 No\r\nDate: {formatdate(usegmt=True)}\r\nContent-Length: 0\r\n\r\n".encode()
        )


@pytest.fixture(scope="module")
def url():
    """What the platform's address is: something answers there, with the time."""
    with listening_for(answer) as found:
        yield found


@pytest.fixture
def outer(outer, monkeypatch):
    """What signs in without a daemon reaches it, through the real client."""
    outside = DaemonDependencies(transport=outer.platform.transport, sleep=hurried_sleep)
    monkeypatch.setattr(session, "Account", partial(session.Account, outside=outside))
    return outer


@pytest.fixture
def state(tmp_path):
    return tmp_path / "s"


def options(url: str, secrets: str = "file") -> list[str]:
    return ["--platform", url, "--network", "regtest", "--secrets", secrets]


def test_what_is_needed_is_looked_at_then_the_person_is_asked_and_told_what_comes_next(state, outer, url):
    device = "trezor:udp:127.0.0.1:21324"
    more = ["--device", device, "--label", LABEL]
    ended = signerd("--state", str(state), "setup", *options(url), *more, typed=CREDENTIALS)
    for name in ("libraries", "permissions", "secrets", "platform", "clock"):
        assert f" {name} " in ended.out
    assert f"Signed in as {EMAIL}" in ended.out
    assert f"`signerd --state {state} run`" in ended.out
    written = load_config(state / "config.toml")
    assert (written.secrets.store, str(written.network)) == ("file", "regtest")
    assert (written.devices.endpoints, written.label) == ((device,), LABEL)


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


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def alone(state, store, monkeypatch):
    """No daemon, a configuration, and a store in memory."""
    state.mkdir(mode=0o700)
    (state / "config.toml").write_text(f'network = "regtest"\n[platform]\nurl = "{URL}"\n')
    monkeypatch.setattr("signerd.cli.foreground.secret_store", lambda *_args: store)
    return state


# --- without a daemon ---------------------------------------------------------------------------------------


def test_login_stores_the_session_and_logout_forgets_it(alone, store, outer):
    ended = signerd("login", state=alone, typed=f"{EMAIL}\n{PASSWORD}\n")
    assert f"Signed in as {EMAIL}" in ended.out
    assert PASSWORD not in ended.out + ended.err
    assert json.loads(store.kept or "")["email"] == EMAIL
    assert signerd("logout", state=alone).out == "Signed out.\n"
    assert store.kept is None
    with open_journal(alone) as journal:
        assert {"signed-in", "signed-out"} <= {entry.note.kind for entry in journal.audit()}
    assert ("POST", "/auth/logout") in outer.platform.requests
    assert signerd("logout", "--json", state=alone).json == {"signed_in": False}


# --- through the daemon -------------------------------------------------------------------------------------


def test_with_a_daemon_the_daemon_signs_in(state, outer):
    outer.platform.two_factor = True
    with served_daemon(state, outer, prepared=False, sign_in=False) as daemon:
        assert "You are not signed in" in signerd("status", state=state).out
        signerd("login", state=state, typed=f"{EMAIL}\n{PASSWORD}\n{OTP}\n")
        with daemon.client() as client:
            status: Status = client.status()
        assert (status.signed_in, status.email) == (True, EMAIL)
        signerd("login", state=state, typed=f"{EMAIL}\nwrong\n", ends=Exit.SIGNED_OUT)
        signerd("logout", state=state)
        with daemon.client() as client:
            assert not client.status().signed_in


# --- the configuration --------------------------------------------------------------------------------------


@pytest.fixture
def of_the_user(alone, tmp_path):
    """The configuration stands in the user's own folder, and none in the state folder."""
    path = tmp_path / "config/signerd/config.toml"
    path.parent.mkdir(parents=True)
    return (alone / "config.toml").rename(path)


def test_another_platform_than_the_users_configuration_names_is_given_no_password(of_the_user, alone, outer):
    other = ["--platform", "https://evil.example", "--network", "regtest"]
    for options in (other, ["--platform", URL, "--network", "signet"]):
        ended = signerd(
            "login", *options, "--json", state=alone, typed=f"{EMAIL}\n{PASSWORD}\n", ends=Exit.STATE
        )
        assert ended.error["code"] == "already-configured"
        assert str(of_the_user) in ended.err
        assert "for every state folder" in ended.err
    assert outer.platform.requests == []
    signerd("login", "--platform", URL, "--network", "regtest", state=alone, typed=f"{EMAIL}\n{PASSWORD}\n")
    assert not (alone / "config.toml").exists()


def test_a_configuration_that_was_made_meanwhile_is_not_written_over(state):
    state.mkdir(mode=0o700)
    _config, write = config_for(state, SetupOptions(URL, "regtest"))
    (state / "config.toml").write_text('network = "signet"\n[platform]\nurl = "https://other.example"\n')
    before = (state / "config.toml").read_bytes()
    with pytest.raises(AlreadyConfigured, match=r"other\.example"):
        write()
    assert (state / "config.toml").read_bytes() == before
