"""What a backup holds, and what it must not hold."""

import sqlite3
from contextlib import closing

import pytest

from signerd.apps.names import token_hash
from signerd.backup.writing import make_backup
from signerd.errors import JournalCorrupted
from signerd.journal.rows import audit_entries
from tests.support.backups import CONFIG, NOON, RULES, TOKEN, backup_of, open_one, remembering


@pytest.fixture
def state(tmp_path):
    return remembering(tmp_path / "s")


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
