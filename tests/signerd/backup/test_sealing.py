"""A backup is encrypted and opened again, and nothing else opens it; what is inside is packed and read
alike, and nothing else is taken.
"""

import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrage import x25519

from multisig import Network
from signerd.backup import container
from signerd.backup.container import Backup, Manifest, fingerprint, pack, unpack
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
from tests.support.backups import NOON

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


MANIFEST = Manifest(signerd="1.0", made_at=NOON, network=Network.REGTEST, entries=3, head="ab" * 32)
FILES = {"journal.sqlite3": b"SQLite", "config.toml": b"x"}


def tar(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as made:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.type = len(data), kind
            made.addfile(info, io.BytesIO(data))
    return content.getvalue()


def with_manifest(**changes: object) -> bytes:
    manifest = json.dumps({**json.loads(MANIFEST.model_dump_json()), **changes}).encode()
    return tar(("backup.json", manifest), *FILES.items())


def long_names(count: int) -> bytes:
    """Headers of GNU tar, each about the one behind it."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2
    return (info.tobuf(tarfile.GNU_FORMAT) + b"a\0".ljust(512, b"\0")) * count


LONG_NAMES = long_names(3_000)
SPARSE = tarfile.TarInfo("config.toml")
SPARSE.type = tarfile.GNUTYPE_SPARSE


def test_the_fingerprint_is_of_everything_in_it():
    whole = Backup(MANIFEST, FILES)
    others = [
        Backup(MANIFEST, {**FILES, "config.toml": b"y"}),
        Backup(MANIFEST, {**FILES, "rules.toml": b""}),
        Backup(MANIFEST.model_copy(update={"entries": 4}), FILES),
    ]
    assert len({fingerprint(one) for one in (whole, *others)}) == 4
    assert fingerprint(unpack(pack(whole))) == fingerprint(whole)


@given(st.binary(max_size=5_000), st.binary(max_size=500), st.none() | st.binary(max_size=500))
def test_what_was_packed_is_read(journal, config, rules):
    files = {"journal.sqlite3": journal, "config.toml": config}
    if rules is not None:
        files["rules.toml"] = rules
    assert unpack(pack(Backup(MANIFEST, files))) == Backup(MANIFEST, files)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a backup|has no"),
        (b"nonsense" * 100, "not a backup"),
        (tar(*FILES.items()), "has no backup.json"),
        (tar(("backup.json", b"{}"), ("config.toml", b"x")), "has no journal.sqlite3"),
        (with_manifest(entries=-1), "entries"),
        (with_manifest(head="no"), "head"),
        (with_manifest(signerd="1\n  chain  9"), "signerd"),
        (LONG_NAMES, "not a backup"),
        # Neither a cut one, nor a sparse file about its size, is believed.
        (pack(Backup(MANIFEST, FILES))[:600], "not a backup|has no"),
        (SPARSE.tobuf() + bytes(1024), "does not belong to a backup"),
        (with_manifest(made_at="2026-01-02T03:04:05"), "made_at"),
        (with_manifest(network="elsewhere"), "network"),
        (with_manifest(format=0), "format"),
        (tar(("backup.json", b"[" * 60_000), *FILES.items()), "cannot be read"),
        (tar(("backup.json", b" " * 70_000), *FILES.items()), "larger"),
        (tar(("../config.toml", b"x")), "does not belong to a backup"),
        (tar(("secrets.json", b"x")), "does not belong to a backup"),
        (tar(("config.toml", b""), kind=tarfile.SYMTYPE), "does not belong to a backup"),
        (tar(("config.toml", b""), kind=tarfile.DIRTYPE), "does not belong to a backup"),
        (tar(("config.toml", b"x"), ("config.toml", b"y")), "twice"),
    ],
)
def test_what_is_no_backup_is_refused_in_words(content, why):
    with pytest.raises(BackupUnreadable, match=why):
        unpack(content)


def test_nothing_larger_than_what_is_read_is_written(monkeypatch):
    monkeypatch.setattr(container, "LIMITS", {**container.LIMITS, "config.toml": 3})
    with pytest.raises(BackupUnreadable, match="has 4 bytes"):
        pack(Backup(MANIFEST, {**FILES, "config.toml": b"long"}))
