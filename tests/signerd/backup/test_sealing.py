"""Encrypted and opened again; nothing else opens it."""

import pytest
from pyrage import x25519

from signerd.backup.sealing import (
    BUSY_SECONDS,
    open_by,
    open_with,
    read_sealed,
    seal_for,
    seal_with,
    wants_passphrase,
    work_of,
)
from signerd.errors import BackupLocked, BackupNotMade, BackupUnreadable

CONTENT = b"what is remembered" * 10_000


@pytest.fixture(scope="module")
def by_passphrase():
    return seal_with(CONTENT, "phrase")


@pytest.fixture(scope="module")
def identity():
    return x25519.Identity.generate()


@pytest.fixture
def key_file(tmp_path, identity):
    path = tmp_path / "key.txt"
    path.write_text(f"# created: today\n# public key: {identity.to_public()}\n{identity}\n")
    return path


def test_a_passphrase_opens_it_and_another_does_not(by_passphrase):
    assert b"remembered" not in by_passphrase
    assert wants_passphrase(by_passphrase)
    assert open_with(by_passphrase, "phrase") == CONTENT
    with pytest.raises(BackupLocked):
        open_with(by_passphrase, "phrasE")


def with_work(sealed: bytes, work: int) -> bytes:
    return sealed.replace(f" {work_of(sealed)}\n".encode(), f" {work}\n".encode(), 1)


def test_what_is_too_much_work_is_said_to_be_that_and_not_a_wrong_passphrase(by_passphrase):
    ticks = iter(range(0, 1_000, 5))
    with pytest.raises(BackupLocked, match=r"takes 2\^40 steps") as told:
        open_with(with_work(by_passphrase, 40), "phrase", lambda: float(next(ticks)))
    assert next(ticks) == BUSY_SECONDS + 5
    assert "less busy" in told.value.hint


def test_a_busy_machine_is_asked_again_and_the_most_work_is_kept(monkeypatch, by_passphrase):
    tries = [with_work(by_passphrase, work) for work in (9, 12, 11, 17, 18)]
    given = iter(tries)
    monkeypatch.setattr("pyrage.passphrase.encrypt", lambda _content, _passphrase: next(given))
    assert work_of(seal_with(CONTENT, "phrase")) == 17
    assert next(given) == tries[-1]
    given = iter(tries[:3] * 3)
    assert work_of(seal_with(CONTENT, "phrase")) == 12


def test_the_secret_key_opens_it_and_another_does_not(identity, key_file, tmp_path):
    sealed = seal_for(CONTENT, str(identity.to_public()))
    assert not wants_passphrase(sealed)
    assert open_by(sealed, key_file) == CONTENT
    other = tmp_path / "other.txt"
    other.write_text(str(x25519.Identity.generate()))
    with pytest.raises(BackupLocked):
        open_by(sealed, other)
    with pytest.raises(BackupLocked):
        open_with(sealed, "phrase")


@pytest.mark.parametrize("part", ["head", "body", "end"])
@pytest.mark.parametrize("how", ["cut", "changed"])
def test_what_was_cut_or_changed_does_not_open(identity, key_file, part, how):
    sealed = seal_for(CONTENT, str(identity.to_public()))
    at = {"head": 60, "body": len(sealed) // 2, "end": len(sealed) - 1}[part]
    bad = sealed[:at] if how == "cut" else sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
    with pytest.raises(BackupLocked):
        open_by(bad, key_file)


@pytest.mark.parametrize("recipient", ["", "age1", "age1" + "q" * 58, "AGE-SECRET-KEY-1", "ssh-ed25519 AAAA"])
def test_what_is_no_public_key_is_refused(recipient):
    with pytest.raises(BackupNotMade, match="public key"):
        seal_for(CONTENT, recipient)


def test_a_file_that_is_no_backup_is_not_read_on(tmp_path):
    for content in (b"", b"age-encryption.org/v2\n", b"SQLite format 3"):
        (tmp_path / "f").write_bytes(content)
        with pytest.raises(BackupUnreadable, match="not an encrypted backup"):
            read_sealed(tmp_path / "f")
    with pytest.raises(BackupUnreadable, match="cannot be read"):
        read_sealed(tmp_path / "absent")
