"""What a backup holds, and what it must not hold. A state folder from a backup: all is remembered, and a kill
leaves an empty folder or a whole one.
"""

import os
import signal
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from signerd.apps.names import token_hash
from signerd.backup.restoring import BESIDE, restore
from signerd.backup.writing import make_backup
from signerd.core.audit import first_fault
from signerd.errors import BackupUnreadable, FolderNotEmpty, JournalCorrupted
from signerd.journal import held
from signerd.journal.rows import audit_entries
from tests.support.backups import CONFIG, NOON, RULES, TOKEN, backup_of, open_one, remembering
from tests.support.forked import in_child


@pytest.fixture
def state(tmp_path):
    return remembering(tmp_path / "s")


def later():
    return NOON + timedelta(days=1)


def accept(_remembered):
    return True


def told_of(journal):
    """All that a restored journal must still know."""
    return (
        journal.pins(),
        journal.own_keys(),
        journal.claims(),
        [(record.psbt_id, record.signature, record.identity) for record in journal.records()],
        journal.spent(),
        [entry.digest for entry in journal.audit()],
    )


def test_everything_is_remembered_and_the_chain_goes_on(state, tmp_path):
    new = tmp_path / "new"
    seen = []
    assert restore(backup_of(state), new, lambda found: not seen.append(found), now=later)
    with open_one(state) as before, open_one(new) as after:
        old, restored = told_of(before), told_of(after)
        assert restored[:5] == old[:5]
        assert restored[5][: len(old[5])] == old[5]
        made, note = (entry for entry in after.audit(len(old[5])) if entry.sequence <= len(old[5]) + 2)
        assert (made.note.kind, note.note.kind) == ("backup", "restored")
        assert note.note.facts["head"] == made.digest.hex()
        assert first_fault(after.audit()) is None
        assert after.apps.all() == ()
    for name in ("config.toml", "rules.toml", "registrations.json"):
        assert (new / name).read_bytes() == (state / name).read_bytes()
    assert not (new / "secrets.json").exists()
    assert stat.S_IMODE(new.stat().st_mode) == 0o700
    (found,) = seen
    assert (found.signatures, found.unclear) == (1, 1)
    assert [name for name, _code in found.pins] == ["Treasury"]


@pytest.mark.parametrize("name", ["config.toml", "journal.sqlite3", "anything"])
def test_a_folder_in_use_is_left_alone(state, tmp_path, name):
    new = tmp_path / "new"
    new.mkdir(mode=0o700)
    (new / name).write_text("mine")
    with pytest.raises(FolderNotEmpty, match=name):
        restore(backup_of(state), new, accept)
    assert {path.name: path.read_text() for path in new.iterdir()} == {name: "mine"}


def test_an_empty_folder_with_a_lock_is_taken_and_a_held_one_is_not(state, tmp_path):
    new = tmp_path / "new"
    backup = backup_of(state)
    with held(new), pytest.raises(Exception, match="another signerd works on"):
        restore(backup, new, accept)
    assert restore(backup, new, accept)
    assert (new / "journal.sqlite3").exists()


def points(state, folder):
    passed = []
    restore(backup_of(state), folder, accept, fault=passed.append)
    return tuple(dict.fromkeys(passed))


def test_killed_anywhere_it_is_empty_or_whole(state, tmp_path):
    backup = backup_of(state)
    names = points(state, tmp_path / "undisturbed")
    assert len(names) >= 4
    for number, name in enumerate(names):
        new = tmp_path / f"n{number}"

        def kill(point, name=name):
            if point == name:
                os.kill(os.getpid(), signal.SIGKILL)

        assert in_child(lambda new=new, kill=kill: restore(backup, new, accept, fault=kill)) == signal.SIGKILL
        if not new.exists():
            assert restore(backup, new, accept)
        assert not new.with_name(new.name + BESIDE).exists()
        with open_one(new) as journal:
            assert journal.restored is not None
            assert first_fault(journal.audit()) is None


def test_a_journal_with_another_head_than_the_manifest_is_refused(state, tmp_path):
    backup = backup_of(state)
    other = replace(backup, manifest=backup.manifest.model_copy(update={"head": "00" * 32}))
    with pytest.raises(BackupUnreadable, match="not the one that the backup names"):
        restore(other, tmp_path / "new", accept)


def test_it_holds_what_is_remembered(state):
    found = backup_of(state)
    assert found.files["config.toml"].decode() == CONFIG
    assert found.files["rules.toml"].decode() == RULES
    assert set(found.files) == {"journal.sqlite3", "config.toml", "rules.toml", "registrations.json"}
    with open_one(state) as journal:
        entries, head = journal.head()
    with closing(sqlite3.connect(":memory:")) as journal:
        journal.row_factory = sqlite3.Row
        journal.deserialize(found.files["journal.sqlite3"])
        *_, before, last = audit_entries(journal)
    # One more entry, which names what stands beside the chain.
    assert (before.sequence, before.digest) == (entries, head)
    assert (found.manifest.entries, found.manifest.head) == (last.sequence, last.digest.hex())


def test_no_secret_is_in_its_plain_bytes(state):
    content = make_backup(state, NOON)[1]
    assert token_hash(TOKEN) in (state / "journal.sqlite3").read_bytes() + wal_of(state)
    for secret in (TOKEN.encode(), token_hash(TOKEN), b"session-of-the-platform"):
        assert secret not in content
    assert b"secrets.json" not in content


def wal_of(state):
    path = state / "journal.sqlite3-wal"
    return path.read_bytes() if path.exists() else b""


def test_a_damaged_journal_replaces_no_good_backup(state):
    with closing(sqlite3.connect(state / "journal.sqlite3")) as journal, journal:
        journal.execute("DROP TRIGGER audit_stays")
        journal.execute("UPDATE audit SET subject = 'other' WHERE sequence = 2")
    with pytest.raises(JournalCorrupted, match="entry 2 was changed"):
        make_backup(state, NOON)
