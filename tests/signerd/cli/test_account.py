"""login, logout: through the daemon and without one; secrets are typed, and neither shown nor in the
arguments (docs/sign/accounts.md).
"""

import json
from functools import partial

import pytest

from custody.common.terminal import Exit
from signerd import app
from signerd.cli.foreground import SetupOptions, config_for
from signerd.errors import AlreadyConfigured
from signerd.shapes import Status
from tests.support.command import signerd
from tests.support.daemons import MemoryStore, hurried_sleep
from tests.support.fake_platform import EMAIL, OTP, PASSWORD, URL
from tests.support.served import served_daemon


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def alone(state, outer, store, monkeypatch):
    """No daemon, a configuration, the scripted platform behind the real client, and a store in memory."""
    (state / "config.toml").write_text(f'network = "regtest"\n[platform]\nurl = "{URL}"\n')
    monkeypatch.setattr("signerd.cli.foreground.secret_store", lambda *_args: store)
    outside = partial(app.DaemonDependencies, transport=outer.platform.transport, sleep=hurried_sleep)
    monkeypatch.setattr(app, "DaemonDependencies", outside)
    return state


def notes(state) -> list[str]:
    """What the journal's chain says."""
    from signerd.core.values import SigningLimits
    from signerd.journal import Journal
    from tests.support.desk import NETWORK

    with Journal(state, network=NETWORK, limits=SigningLimits()) as journal:
        return [entry.note.kind for entry in journal.audit()]


# --- without a daemon ---------------------------------------------------------------------------------------


def test_login_stores_the_session_and_logout_forgets_it(alone, store, outer):
    ended = signerd("login", state=alone, typed=f"{EMAIL}\n{PASSWORD}\n")
    assert f"Signed in as {EMAIL}" in ended.out
    assert PASSWORD not in ended.out + ended.err
    assert json.loads(store.kept or "")["email"] == EMAIL
    assert signerd("logout", state=alone).out == "Signed out.\n"
    assert store.kept is None
    assert {"signed-in", "signed-out"} <= set(notes(alone))
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
    _config, write = config_for(state, SetupOptions(URL, "regtest"))
    (state / "config.toml").write_text('network = "signet"\n[platform]\nurl = "https://other.example"\n')
    before = (state / "config.toml").read_bytes()
    with pytest.raises(AlreadyConfigured, match=r"other\.example"):
        write()
    assert (state / "config.toml").read_bytes() == before
