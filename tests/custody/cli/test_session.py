"""Sessions between commands: stored privately, renewed by one command at a time; and service accounts."""

import os
import signal
import socket
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import delete

from custody.cli import stored_session
from custody.cli.common import Stop
from custody.common import session_store
from custody.common.terminal import Exit
from custody.server.setup import has_account
from custody.server.sign_in.accounts import LOGIN_FAILURES_ANYWHERE
from custody.server.store.models import AttemptRow
from tests.custody.cli.conftest import PLATFORM, Drawer
from tests.support.accounts import register
from tests.support.custody import ok
from tests.support.platform import PASSWORD
from tests.support.sdk import sdk
from tests.support.service_accounts import issue, made, revoke

ADMIN, EVE, PASSPHRASE = "admin@example.org", "eve@example.org", "open sesame"


@pytest.fixture(autouse=True)
def cheap_kdf(monkeypatch):
    """Replaces the key derivation's real cost."""
    monkeypatch.setattr(session_store, "ARGON2_MEMORY_KIB", 64)
    monkeypatch.setattr(session_store, "ARGON2_PASSES", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "session"


def sign_in(custody, email=ADMIN, *codes: str):
    answers = "\n".join([PASSPHRASE, email, PASSWORD, *codes]) + "\n"
    return custody("login", "--platform", PLATFORM, "--secrets", "file", answers=answers)


def whoami(custody, passphrase=PASSPHRASE):
    return custody("whoami", answers=f"{passphrase}\n")


def test_a_session_is_kept_encrypted_renewed_and_ended(desk, custody, folder):
    told = sign_in(custody)
    assert told.stdout == f"Signed in as {ADMIN}. The session is kept in: encrypted file.\n", told.output
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    written = b"".join(path.read_bytes() for path in folder.iterdir())
    assert not {word for word in (PASSWORD, PASSPHRASE, "refresh", "access") if word.encode() in written}
    # Each takes over what the one before renewed: else its token, used twice, would look stolen.
    for _ in range(3):
        assert whoami(custody).stdout.startswith(f"{ADMIN} (user 1) at {PLATFORM}")
        desk.world.clock.advance(hours=1)
    assert whoami(custody, "another").exit_code == Exit.SIGNED_OUT
    # It is sent to no other platform.
    stored = folder / "session.json"
    own = stored.read_text()
    stored.write_text(own.replace("custody.example", "elsewhere.example"))
    elsewhere = whoami(custody)
    assert (elsewhere.exit_code, "you are not signed in here" in elsewhere.stderr) == (Exit.SIGNED_OUT, True)
    stored.write_text(own)
    assert custody("logout", answers=f"{PASSPHRASE}\n").stdout == "Signed out.\n"
    assert [path.name for path in folder.iterdir()] == ["lock"]
    assert whoami(custody).exit_code == Exit.SIGNED_OUT


def test_a_person_types_the_passphrase_once_in_ten_minutes(folder, tmp_path, monkeypatch):
    ours, terminal = os.openpty()
    asked = []

    def store():
        return stored_session.store_of(folder, "file", lambda: asked.append(1) or PASSPHRASE)

    folder.mkdir(mode=0o700)
    memory = tmp_path / "memory"
    memory.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(memory))
    store().save("secret")
    with os.fdopen(ours), os.fdopen(terminal) as stdin, monkeypatch.context() as at:
        at.setattr("sys.stdin", stdin)
        assert [store().load() for _ in range(3)] == ["secret"] * 3
        assert len(asked) == 2, "to save it, then to load it"
        (kept,) = memory.iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert PASSPHRASE.encode() not in kept.read_bytes()
        past = time.time() - 601
        os.utime(kept, (past, past))
        assert (store().load(), len(asked)) == ("secret", 3)
        # Another file has another salt.
        (folder / session_store.SECRETS_FILE).unlink()
        store().save("another")
        assert (store().load(), len(asked)) == ("another", 5)
        store().clear()
        assert not list(memory.iterdir())
        store().save("third")
        # Nothing is kept where others may enter.
        memory.chmod(0o755)
        assert [store().load() for _ in range(2)] == ["third"] * 2
        assert (len(asked), list(memory.iterdir())) == (8, [])
        memory.chmod(0o700)
        store().load()
    # A program's lines are counted: it is asked each time.
    before = len(asked)
    assert [store().load() for _ in range(2)] == ["third"] * 2
    assert len(asked) == before + 2


def test_a_folder_that_others_may_enter_is_refused(custody, folder):
    folder.mkdir(mode=0o755)
    refused = sign_in(custody)
    assert (refused.exit_code, "open to other users" in refused.stderr) == (Exit.STATE, True)


def test_nothing_is_written_before_the_platform_has_taken_the_password(desk, custody, folder):
    refused = custody("login", "--platform", PLATFORM, answers=f"{ADMIN}\nwrong password\n")
    assert refused.exit_code == Exit.SIGNED_OUT
    assert refused.stderr.startswith("custody: ")
    assert not folder.exists()
    assert custody("login").exit_code == Exit.USAGE


def test_a_session_that_cannot_be_kept_is_ended_at_the_platform(desk, custody, folder, monkeypatch):
    def no_keyring(*_):
        raise Stop("this desktop has no keyring", status=Exit.SIGNED_OUT)

    monkeypatch.setattr("custody.cli.desk.store_of", no_keyring)
    own = sdk(desk.world, ADMIN)
    before = len(own.sessions())
    refused = sign_in(custody)
    assert (refused.exit_code, "no keyring" in refused.stderr) == (Exit.SIGNED_OUT, True)
    assert not folder.exists()
    assert len(own.sessions()) == before


def test_signing_in_again_ends_the_session_before_and_empties_another_store(
    desk, custody, folder, monkeypatch
):
    drawer, real = Drawer(), stored_session.store_of
    monkeypatch.setattr(
        "custody.cli.desk.store_of", lambda *given: drawer if given[1] == "keyring" else real(*given)
    )
    own = sdk(desk.world, ADMIN)
    before = len(own.sessions())
    keyring = custody("login", "--platform", PLATFORM, answers=f"{ADMIN}\n{PASSWORD}\n")
    assert (keyring.stderr, len(own.sessions())) == ("", before + 1)
    to_file = sign_in(custody)
    assert to_file.exit_code == 0
    assert (drawer.kept, len(own.sessions())) == (None, before + 1)
    assert whoami(custody).exit_code == 0
    back = custody("login", "--secrets", "keyring", answers=f"{ADMIN}\n{PASSWORD}\n")
    assert back.exit_code == 0
    assert ((folder / session_store.SECRETS_FILE).exists(), len(own.sessions())) == (False, before + 1)
    # Of another account it can only be said.
    other = custody("login", answers=f"alice@example.org\n{PASSWORD}\n")
    assert f"The session of {ADMIN} at {PLATFORM} is no longer kept here" in other.stderr
    assert len(own.sessions()) == before + 1
    assert custody("whoami").stdout.startswith("alice@example.org")


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"CUSTODY_EMAIL": ""}, Exit.USAGE, "the platform or the account of the service is not named"),
        ({"CUSTODY_PASSWORD_FILE": "/nowhere/password"}, Exit.STATE, "holds no password"),
        ({"CUSTODY_EMAIL": EVE}, Exit.SIGNED_OUT, "is asked for a code"),
        ({"CUSTODY_PLATFORM": "http://custody.example"}, Exit.PLATFORM, "would send secrets in the clear"),
    ],
)
def test_a_service_that_cannot_sign_in_is_told_why(
    desk, custody, account, password_file, change, status, sentence
):
    if not has_account(desk.world.platform.services, EVE):
        register(desk.world, EVE)
    told = custody("whoami", env=account | change)
    assert (told.exit_code, sentence in told.stderr) == (status, True), told.output
    password_file.chmod(0o644)
    open_to_all = custody("whoami", env=account)
    assert (open_to_all.exit_code, "open to other users" in open_to_all.stderr) == (Exit.STATE, True)


def test_p69_a_program_has_its_secret_and_needs_no_session(desk, custody, tmp_path):
    """A hundred wrong passwords of its maker's keep it out as little as wrong secrets."""
    admin = desk.world.as_user(ADMIN)
    account_id, _ = made(desk.world, admin, rights=["VIEW_BALANCES"])
    file = tmp_path / "secret"
    file.write_text(ok(issue(admin, account_id))["secret"] + "\n")
    file.chmod(0o600)
    env = {"CUSTODY_PLATFORM": PLATFORM, "CUSTODY_SECRET_FILE": str(file)}
    with desk.store.write() as db:
        tries = {"kind": "sign-in-anywhere", "subject_hash": sha256(ADMIN.encode()).digest()}
        now = desk.world.clock()
        db.add_all(AttemptRow(**tries, tried_at=now) for _ in range(LOGIN_FAILURES_ANYWHERE))
    told = custody("whoami", env=env)
    assert told.stdout.startswith(f"Service account {account_id} (Payroll) of {ADMIN} at {PLATFORM}"), told
    assert "Treasury" in custody("vault", "list", env=env).stdout
    members = custody("member", "list", env=env)
    assert (members.exit_code, "may not call this" in members.stderr) == (Exit.PLATFORM, True)
    nowhere = custody("whoami", env=env | {"CUSTODY_PLATFORM": ""})
    assert (nowhere.exit_code, "no platform is named" in nowhere.stderr) == (Exit.USAGE, True)
    ok(revoke(admin, account_id))
    ended = custody("vault", "list", env=env)
    assert (ended.exit_code, "refuses this secret" in ended.stderr) == (Exit.SIGNED_OUT, True)
    with desk.store.write() as db:
        db.execute(delete(AttemptRow))


def test_ctrl_c_ends_at_once_with_130(account):
    """While a platform that took the connection says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        env = account | {"CUSTODY_PLATFORM": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        command = [sys.executable, "-c", "from custody.cli import main; main()", "whoami", "--json"]
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as program:
            listener.settimeout(300)
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)
                program.send_signal(signal.SIGINT)
                assert program.wait(300) == Exit.INTERRUPTED
            assert "Traceback" not in program.stderr.read()
