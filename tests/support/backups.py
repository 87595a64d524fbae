"""State folders with signatures and a pairing in them, and backups of them."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from signerd.apps.names import token_hash
from signerd.backup.container import Backup, unpack
from signerd.backup.writing import make_backup
from signerd.core import events
from signerd.core.audit import Note, link
from signerd.journal import Journal
from signerd.journal.apps import App
from signerd.journal.rows import audit_entries, digest_of_tables, write_entry
from tests.support.daemons import prepare
from tests.support.desk import open_journal, reviewed, signed_by
from tests.support.payments import shop
from tests.support.wallets import ALICE

CONFIG = """network = "regtest"
[platform]
url = "http://127.0.0.1:9"
[devices]
usb = false
[secrets]
store = "file"
"""
RULES = '[refuse]\nabove_per_day = "60000 sat"\n'
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
TOKEN = "s1_" + "secret-of-an-app" * 2
ORIGIN = "https://pay.example.org"


def remembering(folder: Path) -> Path:
    """Alice signed a payment to the shop, and her device is being asked for another one; an app is paired."""
    folder.mkdir(mode=0o700)
    prepare(folder)
    (folder / "config.toml").write_text(CONFIG)
    (folder / "rules.toml").write_text(RULES)
    (folder / "registrations.json").write_text("{}")
    (folder / "secrets.json").write_text('{"secret": "session-of-the-platform"}')
    with open_one(folder) as journal:
        sign(journal, shop((1,), psbt_id="p-1"))
        approve(journal, shop((3,), psbt_id="p-3"))
        journal.decide("p-3", events.DeviceFound("d"))
        day = timedelta(days=1)
        rights = frozenset({"read"})
        journal.apps.pair(App("app-1", "Shop", ORIGIN, rights, token_hash(TOKEN), NOON, NOON + day))
        journal.apps.let_in(ORIGIN, NOON + day)
    return folder


def open_one(folder: Path) -> Journal:
    return open_journal(folder, now=lambda: NOON)


def approve(journal: Journal, snapshot) -> None:
    journal.poll(snapshot)
    found = reviewed(journal, snapshot.psbt_id)
    journal.decide(snapshot.psbt_id, events.Approved(found.digest, found.to_acknowledge))


def sign(journal: Journal, snapshot) -> None:
    approve(journal, snapshot)
    journal.decide(snapshot.psbt_id, events.DeviceFound("d"))
    journal.decide(snapshot.psbt_id, events.DeviceReturned(signed_by(ALICE, snapshot)))


def write_last_entry(journal: sqlite3.Connection) -> str:
    """The chain's last entry names what now stands beside it, as one writes it who changed that. Returns the
    chain's head. Without triggers.
    """
    last = list(audit_entries(journal))[-1]
    journal.execute("DELETE FROM audit WHERE sequence = ?", (last.sequence,))
    note = Note(last.note.kind, last.note.subject, {"tables": digest_of_tables(journal)})
    entry = link(last.sequence, last.at, note, last.previous)
    write_entry(journal, entry)
    return entry.digest.hex()


def backup_of(folder: Path) -> Backup:
    return unpack(make_backup(folder, NOON)[1])
