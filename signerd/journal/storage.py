"""The state folder, with one owner and one daemon at a time (L12), and the journal's file in it.

``journal.checked`` names the entry of the audit chain up to which the whole journal was last found sound: a
start checks what came after it and what is open, and the daemon checks the whole once it serves. Without that
file everything is checked before the start.

The file is created atomically, checked when opened, and moved aside where it is damaged, never silently
replaced. ``journal.born`` marks a folder that once had a journal: a missing one is then a loss, not a first
start.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from custody.common.private_files import NO_LINK, PRIVATE_FILE, folder_fault, sync_folder, take, write_private
from multisig import Network
from signerd.core.audit import GENESIS, first_fault
from signerd.core.values import Pin
from signerd.errors import (
    AlreadyConfigured,
    AlreadyRunning,
    JournalCorrupted,
    JournalTooNew,
    JournalUnwritable,
    UnsafeFolder,
    system_errors,
)
from signerd.journal import rows
from signerd.journal.rows import RECORD_COLUMNS, audit_entries, audit_head, read_record

T = TypeVar("T")

JOURNAL = "journal.sqlite3"
# Of the schema. Migrations begin with the version after the first one that is released.
VERSION = 1
BORN = "journal.born"
CHECKED = "journal.checked"
# The number of an entry of the chain, and its hash.
Head = tuple[int, bytes]
# Of SQLite's virtual machine, between two looks at whether the daemon stops.
_STEPS_BETWEEN = 10_000
# Longer than a backup takes to copy the file.
BUSY_SECONDS = 5.0
# SQLite errors that say nothing about the file's content (https://sqlite.org/rescode.html).
_PASSING = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)


def open_journal(folder: Path, now: datetime) -> tuple[sqlite3.Connection, bool]:
    """The journal of a held folder; and whether it was checked whole, which else is still to be done.

    Raises:
        JournalCorrupted: damaged (it was moved aside) or gone. JournalTooNew, JournalUnwritable.
    """
    path = folder / JOURNAL
    if not path.exists():
        _make(folder)
    if not (folder / BORN).exists():
        write_private(folder / BORN, f"{now.isoformat()}\n".encode())
    if not path.stat().st_size:
        # SQLite would take an empty file for a new database.
        raise _aside(folder, now, "it is empty")
    try:
        connection = _connect(path)
    except sqlite3.DatabaseError as error:
        _require_damage(error)
        raise _aside(folder, now, f"it cannot be opened: {error}") from error
    try:
        after = _checked(folder, connection)
        fault = fault_of(connection, after)
        if fault is None:
            migrate(connection)
            if after is None:
                _note_checked(folder, audit_head(connection))
            return connection, after is None
    except Exception:
        connection.close()
        raise
    connection.close()
    raise _aside(folder, now, fault)


def open_to_read(folder: Path) -> sqlite3.Connection:
    """The journal read-only, beside a daemon that writes it.

    Raises:
        JournalUnwritable: there is none, or it cannot be read.
    """
    path = folder / JOURNAL
    if not path.exists():
        raise JournalUnwritable(f"there is no journal in {folder}", hint="Start signerd once.")
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


def read_pins(folder: Path, network: Network) -> tuple[Pin, ...]:
    """The vaults that are pinned now; none where there is no journal yet. Raises JournalUnwritable."""
    query = "SELECT * FROM pins ORDER BY name"
    return read_from(folder, lambda one: tuple(rows.read_pin(r, network) for r in one.execute(query)), ())


def read_from(folder: Path, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
    """Raises JournalUnwritable where the journal has another version: a reader does not migrate it."""
    if not (folder / JOURNAL).exists():
        return nothing
    with closing(open_to_read(folder)) as connection:
        version = _version(connection)
        if version != VERSION:
            raise JournalUnwritable(
                f"the journal has version {version}, and this signerd reads version {VERSION}",
                hint="Start the newer signerd of the two once.",
            )
        return read(connection)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the journal to this version: make its tables, atomically, where it is new.

    Raises:
        JournalTooNew: a later signerd wrote it.
    """
    version = _version(connection)
    if version > VERSION:
        raise JournalTooNew(f"the journal is of version {version}; this signerd knows up to {VERSION}")
    if version == VERSION:
        return
    tables = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    # executescript() commits an open transaction, so the script has its own.
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{tables}\nPRAGMA user_version = {VERSION};\nCOMMIT;")
    except sqlite3.Error:
        connection.rollback()
        raise


def _checked(folder: Path, connection: sqlite3.Connection) -> Head | None:
    """Up to where the journal was checked; None where that is not known of this one."""
    try:
        sequence, digest = json.loads((folder / CHECKED).read_bytes())
        query = "SELECT sequence, hex(digest) FROM audit WHERE sequence = ?"
        row = connection.execute(query, (int(sequence),)).fetchone()
    except (OSError, ValueError, TypeError, sqlite3.DatabaseError):
        return None
    is_of_it = row is not None and tuple(row) == (sequence, str(digest).upper())
    return (row[0], bytes.fromhex(row[1])) if is_of_it else None


def _note_checked(folder: Path, head: Head) -> None:
    write_private(folder / CHECKED, json.dumps([head[0], head[1].hex()]).encode())


def check_whole(folder: Path, stops: Callable[[], bool]) -> str | None:
    """What is wrong with the journal that a daemon has open; None where all is sound, or ``stops`` said so
    first. Where something is wrong, the next start finds it too, and sets the journal aside.

    Raises JournalUnwritable.
    """
    with closing(open_to_read(folder)) as connection:
        connection.set_progress_handler(stops, _STEPS_BETWEEN)
        try:
            connection.execute("BEGIN")
            head, fault = audit_head(connection), fault_of(connection)
        except (JournalUnwritable, sqlite3.OperationalError):
            if stops():
                return None
            raise
    if fault is None:
        _note_checked(folder, head)
    else:
        (folder / CHECKED).unlink(missing_ok=True)
    return fault


def fault_of(connection: sqlite3.Connection, after: Head | None = None) -> str | None:
    """What is wrong with the file, the audit chain or a proposal in it; None where all are sound.

    ``after``: the entry up to which it is known to be sound: only the chain after it and what is open is
    looked at.

    Raises:
        JournalUnwritable: it cannot be checked now.
    """
    try:
        answer = "ok" if after else connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if answer != "ok":
            return f"SQLite finds it damaged: {answer}"
        sequence, digest = after or (0, GENESIS)
        fault = first_fault(audit_entries(connection, sequence), sequence, digest)
        for row in connection.execute(f"{RECORD_COLUMNS} WHERE p.settled = 0" if after else RECORD_COLUMNS):
            read_record(row)
    except sqlite3.DatabaseError as error:
        _require_damage(error)
        return f"it cannot be read: {error}"
    except (ValueError, KeyError, TypeError) as error:
        return f"it cannot be read: {error}"
    return None if fault is None else f"its audit chain is broken: {fault[1]}"


def _require_damage(error: sqlite3.DatabaseError) -> None:
    """Raises JournalUnwritable for an error that says nothing about the file: a sound journal is never moved
    aside.
    """
    # The low byte is the primary code. An error of Python's module itself has none, and concerns the data.
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _PASSING:
        raise JournalUnwritable(
            f"the journal cannot be used now: {error}",
            hint="Close any other program that has it open, and check the disk; then start signerd again.",
        ) from error


def start_over(folder: Path) -> None:
    """Make the next start begin with an empty journal, on the person's request, where the old one is lost or
    moved aside.

    Raises:
        AlreadyConfigured: there is a journal. Only the attempt to open a damaged one moves it aside.
    """
    if (folder / JOURNAL).exists():
        raise AlreadyConfigured(
            f"there is a journal in {folder}", hint="A damaged one is set aside at the start."
        )
    (folder / BORN).unlink(missing_ok=True)
    sync_folder(folder)


def _make(folder: Path) -> None:
    if (folder / BORN).exists():
        raise JournalCorrupted(f"the journal that was in {folder} is gone, or was set aside as damaged")
    fresh = folder / f"{JOURNAL}.new"
    (folder / CHECKED).unlink(missing_ok=True)
    fresh.unlink(missing_ok=True)
    try:
        fresh.touch(mode=PRIVATE_FILE)
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            migrate(connection)
        fresh.replace(folder / JOURNAL)
        sync_folder(folder)
    except (OSError, sqlite3.Error) as error:
        raise JournalUnwritable(f"the journal cannot be created in {folder}: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    connection.row_factory = sqlite3.Row
    try:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "trusted_schema = OFF",
            # In KiB: SQLite's default of 2,000 would fill up in a daemon that runs for weeks.
            "cache_size = -256",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _aside(folder: Path, now: datetime, why: str) -> JournalCorrupted:
    kept = folder / f"damaged-{now:%Y%m%dT%H%M%S%f}"
    kept.mkdir(mode=0o700)
    for suffix in ("", "-wal", "-shm"):
        source = folder / f"{JOURNAL}{suffix}"
        if source.exists():
            source.replace(kept / source.name)
    sync_folder(folder)
    return JournalCorrupted(f"the journal is damaged ({why}). It was set aside in {kept}")


LOCK = "lock"


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The state folder, created or checked, is held exclusively during the body, or until the process ends.

    Raises:
        UnsafeFolder: a symbolic link, another owner, or open to others. AlreadyRunning: another daemon holds
        it.
        JournalUnwritable: it cannot be created.
    """
    make_private(path)
    with system_errors(UnsafeFolder, f"{path / LOCK} cannot be opened"):
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, PRIVATE_FILE)
    try:
        try:
            take(lock)
        except OSError:
            raise AlreadyRunning(f"another signerd works on {path}") from None
        yield
    finally:
        os.close(lock)


def make_private(path: Path) -> None:
    """Create the folder, or accept an existing one that only we can access.

    Raises:
        UnsafeFolder, JournalUnwritable: as ``held``.
    """
    with system_errors(JournalUnwritable, f"{path} cannot be created"):
        fault = folder_fault(path)
    if fault is not None:
        raise UnsafeFolder(fault)
