"""What is inside a backup: packed and read alike, and nothing else is taken."""

import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import Network
from signerd.backup import container
from signerd.backup.container import Backup, Manifest, fingerprint, pack, unpack
from signerd.errors import BackupUnreadable
from tests.support.backups import NOON

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
