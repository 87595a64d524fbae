"""Making a backup: a copy of the journal without what lets anything in, and the files beside it.

The journal is only read, beside a daemon that writes it. What is left out: paired apps' tokens, the origins
that may ask, and the session with the platform, which is not in the journal. An app is paired again on the
new machine, and the person signs in there.
"""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from custody._version import __version__
from custody.private_files import read_bounded
from signerd.account.config import FILE, MAX_CONFIG_BYTES, RULES_FILE, find_config, find_rules, load_config
from signerd.backup.container import MAX_JOURNAL_BYTES, REGISTRATIONS, Backup, Manifest, pack
from signerd.errors import BackupNotMade, JournalCorrupted
from signerd.journal.rows import audit_head
from signerd.journal.storage import JOURNAL, fault_of, open_to_read

# Each lets a program or a web page in. The oldest journals have no such table.
_LEFT_OUT = ("apps", "origins")


def make_backup(state: Path, now: datetime) -> tuple[Manifest, bytes]:
    """What it holds, and its bytes before they are encrypted.

    Raises JournalCorrupted: a damaged journal replaces no good backup. JournalUnwritable, leaves of
    ConfigError, BackupNotMade.
    """
    path = find_config(state)
    config = load_config(path)
    files = {FILE: _read(path, MAX_CONFIG_BYTES)}
    rules = find_rules(config, state)
    if rules is not None:
        files[RULES_FILE] = _read(rules, MAX_CONFIG_BYTES)
    if (state / REGISTRATIONS).exists():
        files[REGISTRATIONS] = _read(state / REGISTRATIONS, 1024 * 1024)
    files[JOURNAL], entries, head = _journal(state)
    manifest = Manifest(
        signerd=__version__, made_at=now, network=config.network, entries=entries, head=head.hex()
    )
    return manifest, pack(Backup(manifest, files))


def _read(path: Path, most: int) -> bytes:
    try:
        return read_bounded(path, most)
    except OSError as error:
        raise BackupNotMade(f"{path} cannot be read: {error.strerror}", hint="Look at the file.") from error


def _journal(state: Path) -> tuple[bytes, int, bytes]:
    """The copy, how long its chain is, and its last hash."""
    with closing(open_to_read(state)) as source, closing(sqlite3.connect(":memory:")) as copy:
        pages, size = (source.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size > MAX_JOURNAL_BYTES:
            raise BackupNotMade(f"the journal has {pages * size:,} bytes", hint="A backup holds 1 GiB of it.")
        source.backup(copy)
        copy.isolation_level, copy.row_factory = None, sqlite3.Row
        fault = fault_of(copy)
        if fault is not None:
            raise JournalCorrupted(f"the journal is damaged ({fault}), and no backup was made of it")
        _leave_out(copy)
        entries, head = audit_head(copy)
        return copy.serialize(), entries, head


def _leave_out(copy: sqlite3.Connection) -> None:
    for table in _LEFT_OUT:
        if copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            copy.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
    # What was deleted still stands in free pages.
    copy.execute("VACUUM")
