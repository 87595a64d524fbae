"""Writing a backup to a file: a copy of the journal without credentials, the configuration, rules and
registrations.

The journal is only read, also while a daemon writes it. Left out are paired apps' tokens, the origins that
may ask, and the session with the platform: on the new machine, apps are paired again, and the person signs
in.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from custody._version import __version__
from custody.common.private_files import read_bounded, write_new
from custody.schemas.common import format_time
from signerd.account.config import FILE, MAX_CONFIG_BYTES, RULES_FILE, find_config, find_rules, load_config
from signerd.backup.container import (
    MAX_JOURNAL_BYTES,
    REGISTRATIONS,
    Backup,
    Manifest,
    fingerprint,
    pack,
    unpack,
)
from signerd.backup.schedule import note_made
from signerd.backup.sealing import seal_for, seal_with
from signerd.core.audit import Note, link
from signerd.errors import BackupNotMade, JournalCorrupted, system_errors
from signerd.journal.books import BACKUP
from signerd.journal.rows import audit_head, digest_of_tables, write_entry
from signerd.journal.storage import JOURNAL, fault_of, open_to_read

# Who has the file tries passphrases without a limit; age's scrypt makes each try dear.
LEAST_PASSPHRASE = 10


def short(passphrase: str) -> str | None:
    """Why it is not taken."""
    is_short = len(passphrase) < LEAST_PASSPHRASE
    return f"the passphrase has fewer than {LEAST_PASSPHRASE} characters" if is_short else None


def back_up(
    state: Path, file: Path, now: datetime, *, passphrase: str | None = None, recipient: str | None = None
) -> tuple[Manifest, str]:
    """Write a backup atomically, readable by its owner only. An existing file is never replaced.

    Returns the manifest and the fingerprint of the content. Raises leaves of BackupError,
    ConfigError and JournalError.
    """
    if file.exists():
        raise BackupNotMade(f"{file} is there already", hint="Name another file: backups are not replaced.")
    manifest, content = make_backup(state, now.astimezone(UTC))
    if recipient is not None:
        sealed = seal_for(content, recipient)
    else:
        if not passphrase:
            raise BackupNotMade("the passphrase is empty", hint="Give one, or a public key: --recipient.")
        if too_short := short(passphrase):
            raise BackupNotMade(
                too_short, hint="Take some words: who has the file tries passphrases without a limit."
            )
        sealed = seal_with(content, passphrase)
    with system_errors(BackupNotMade, f"{file} cannot be written"):
        write_new(file, sealed)
    mark = fingerprint(unpack(content))
    hint = "The backup is good. Look at the disk of the state folder."
    with system_errors(BackupNotMade, f"{file} is written, but {state} cannot be written", hint):
        note_made(state, manifest.made_at, mark)
    return manifest, mark


def make_backup(state: Path, now: datetime) -> tuple[Manifest, bytes]:
    """The manifest, and the bytes to encrypt.

    Raises JournalCorrupted: a damaged journal is not backed up. JournalUnwritable, leaves of ConfigError,
    BackupNotMade.
    """
    path = find_config(state)
    config = load_config(path)
    files = {FILE: _read(path, MAX_CONFIG_BYTES)}
    rules = find_rules(config, state)
    if rules is not None:
        files[RULES_FILE] = _read(rules, MAX_CONFIG_BYTES)
    if (state / REGISTRATIONS).exists():
        files[REGISTRATIONS] = _read(state / REGISTRATIONS, 1024 * 1024)
    files[JOURNAL], entries, head = _journal(state, now)
    manifest = Manifest(
        signerd=__version__, made_at=now, network=config.network, entries=entries, head=head.hex()
    )
    return manifest, pack(Backup(manifest, files))


def _read(path: Path, most: int) -> bytes:
    with system_errors(BackupNotMade, f"{path} cannot be read", "Look at the file."):
        return read_bounded(path, most)


def _journal(state: Path, now: datetime) -> tuple[bytes, int, bytes]:
    """The copy without credentials, the length of its audit chain, and its last hash: of an entry for the
    copy alone that names what stands beside the chain.
    """
    with closing(open_to_read(state)) as source, closing(sqlite3.connect(":memory:")) as copy:
        pages, size = (source.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size > MAX_JOURNAL_BYTES:
            raise BackupNotMade(f"the journal has {pages * size:,} bytes", hint="A backup holds 1 GiB of it.")
        source.backup(copy)
        copy.isolation_level, copy.row_factory = None, sqlite3.Row
        fault = fault_of(copy)
        if fault is not None:
            raise JournalCorrupted(f"the journal is damaged ({fault}), and no backup was made of it")
        for table in ("apps", "origins"):
            copy.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
        # Deleted rows are still in free pages.
        copy.execute("VACUUM")
        entries, head = audit_head(copy)
        made = Note(BACKUP, "journal", {"tables": digest_of_tables(copy)})
        entry = link(entries + 1, format_time(now), made, head)
        write_entry(copy, entry)
        return copy.serialize(), entry.sequence, entry.digest
