"""Secrets are never in plain text, and a keyring that only pretends is not taken."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null

from custody.common import children
from custody.common import session_store as secrets
from signerd.account.secrets import CREDENTIAL, file_store, keyring_store
from signerd.errors import KeyringTimedOut, NoSecretStore, SecretsError, SecretsLocked


@pytest.fixture(autouse=True)
def cheap_kdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real cost is for real passphrases."""
    monkeypatch.setattr(secrets, "ARGON2_MEMORY_KIB", 64)
    monkeypatch.setattr(secrets, "ARGON2_PASSES", 1)


def store(tmp_path: Path, passphrase: str | None = "open sesame") -> secrets.FileStore:
    return file_store(tmp_path / "secrets.json", lambda: passphrase)


def test_what_is_saved_is_private_says_nothing_and_is_read_again_by_the_same_passphrase(tmp_path):
    path, first = tmp_path / "secrets.json", store(tmp_path)
    assert first.load() is None
    first.save("the refresh token")
    assert store(tmp_path).load() == "the refresh token"
    assert b"refresh" not in path.read_bytes()
    assert b"sesame" not in path.read_bytes()
    assert first._key is not None
    assert repr(first._key) not in repr(first)
    # Each save has a nonce of its own.
    before = json.loads(path.read_text())
    first.save("the refresh token")
    after = json.loads(path.read_text())
    assert before["nonce"] != after["nonce"]
    assert before["salt"] == after["salt"]
    for _ in range(2):
        first.clear()
        assert first.load() is None


def test_another_passphrase_neither_reads_nor_overwrites(tmp_path):
    store(tmp_path).save("the refresh token")
    for passphrase in ("open sesam", "", None):
        wrong = store(tmp_path, passphrase)
        with pytest.raises(SecretsLocked):
            wrong.load()
        with pytest.raises(SecretsLocked):
            wrong.save("mine now")
    assert store(tmp_path).load() == "the refresh token"


def test_a_changed_file_is_refused(tmp_path):
    store(tmp_path).save("the refresh token")
    path = tmp_path / "secrets.json"
    content = json.loads(path.read_text())
    for part in ("salt", "nonce", "secret", "memory_kib", "version"):
        changed = "AAAAAAAAAAAAAAAA" if isinstance(content[part], str) else 8
        path.write_text(json.dumps({**content, part: changed}))
        with pytest.raises(SecretsLocked):
            store(tmp_path).load()


def test_on_a_full_disk_the_reason_is_told_and_what_is_stored_stays(tmp_path, monkeypatch):
    store(tmp_path).save("the refresh token")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SecretsError, match="No space left"):
            store(tmp_path).save("the renewed one")
    assert store(tmp_path).load() == "the refresh token"


def test_systemd_hands_over_a_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    assert secrets.credential(CREDENTIAL) is None
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert secrets.credential(CREDENTIAL) is None
    (tmp_path / "signerd-passphrase").write_text("from systemd\n")
    assert secrets.credential(CREDENTIAL) == "from systemd"


# --- the keyring --------------------------------------------------------------------------------------------


class Desktop(KeyringBackend):
    """Stands for a real one: its module's name is on the list."""

    priority = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Pretender(Desktop):
    """Keeps plain text, with the highest priority of all."""

    priority = 9


Desktop.__module__ = "keyring.backends.SecretService"
Pretender.__module__ = "keyrings.alt.file"


def test_only_real_keyrings_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Desktop()
    everything = [null.Keyring(), fail.Keyring(), Pretender(), real]
    monkeypatch.setattr(keyring.backend, "get_all_keyring", lambda: everything)
    assert secrets.real_keyring() is real
    monkeypatch.setattr(keyring.backend, "get_all_keyring", lambda: everything[:3])
    assert secrets.real_keyring() is None
    assert secrets.main("get", "signerd", "x") == 3


def test_the_child_sets_gets_and_deletes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Desktop()
    monkeypatch.setattr(keyring.backend, "get_all_keyring", lambda: [real])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(read=lambda: "secret"))
    assert secrets.main("set", "signerd", "x") == 0
    assert secrets.main("get", "signerd", "x") == 0
    assert capsys.readouterr().out == "secret"
    assert secrets.main("delete", "signerd", "x") == 0
    assert secrets.main("delete", "signerd", "x") == 0
    assert real.kept == {}


def test_a_keyring_that_waits_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    waiting.write_text("#!/bin/sh\nexec sleep 30\n")
    waiting.chmod(0o700)
    monkeypatch.setattr(children.sys, "executable", str(waiting))
    with pytest.raises(KeyringTimedOut):
        keyring_store("state", 0.2).save("x")


def test_l10_no_secret_is_in_the_childs_command_line(monkeypatch):
    commands = []

    def spied(command, **given):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(secrets.subprocess, "run", spied)
    keyring_store("state", 20.0).save("hunter2")
    assert commands
    assert "hunter2" not in str(commands)


def test_nothing_is_imported_from_the_folder_that_the_person_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('somebody else was here')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoSecretStore) as refused:
        keyring_store("nobody", 10, "keyring").load()
    assert "somebody else" not in str(refused.value)
