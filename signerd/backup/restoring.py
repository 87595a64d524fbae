"""Restoring a state folder from a backup: written to a temporary folder, checked, then renamed into place.

A killed process leaves an empty folder or a complete one. Sizes, tables, the chain and the records are
checked before anything is used.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from custody.common.private_files import sync_folder, write_private
from custody.schemas.common import Name
from multisig import MultisigError
from signerd.account.config import FILE, RULES_FILE, load_config
from signerd.backup.container import REGISTRATIONS, Backup, Manifest, fingerprint
from signerd.backup.schedule import NAME, note_made
from signerd.core.states import NOT_TAKEN, State
from signerd.errors import BackupUnreadable, ConfigError, FolderNotEmpty, SignerdError
from signerd.journal import Journal
from signerd.journal.books import BACKUP
from signerd.journal.chain import utc_now
from signerd.journal.rows import audit_head, digest_of_tables, why_unproven
from signerd.journal.storage import (
    BORN,
    CHECKED,
    JOURNAL,
    LOCK,
    VERSION,
    fault_of,
    held,
    make_private,
    migrate,
)
from signerd.runtime import FaultPoint, no_fault

BESIDE = ".restoring"
# Prefixes of the files written there; SQLite adds files beside the journal.
_WRITTEN = (FILE, RULES_FILE, REGISTRATIONS, JOURNAL, BORN, CHECKED, LOCK, NAME)
# What a forged journal may raise as it is read; a number that is too large, and nesting, are the last two.
_BUGS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
_FORGED = (SignerdError, MultisigError, sqlite3.DatabaseError, *_BUGS)
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


@dataclass(frozen=True)
class BackupSummary:
    """What the person checks before the restore.

    ``pins``: name and verification code of each. ``unclear``: proposals that may have been signed on a
    device; the device is not asked again by itself. ``undelivered``: signatures that the platform did not
    have; they are not submitted. ``notes``: remarks about the configuration.
    """

    manifest: Manifest
    fingerprint: str
    pins: tuple[tuple[str, str], ...]
    signatures: int
    unclear: int
    undelivered: int
    notes: tuple[str, ...]


def restore(
    backup: Backup,
    state: Path,
    accept: Callable[[BackupSummary], bool],
    *,
    now: Callable[[], datetime] = utc_now,
    fault: FaultPoint = no_fault,
) -> bool:
    """Restore to ``state``, which must be missing or empty, if ``accept`` returns true. Returns whether it
    did.

    Raises FolderNotEmpty, BackupUnreadable, leaves of JournalError; ``state`` is then unchanged.
    """
    # Existing files are not overwritten.
    _require_no_other(state, (LOCK,))
    beside = state.with_name(state.name + BESIDE)
    _require_no_other(beside, _WRITTEN, "Move it away: signerd needs this name.")
    # Left by an attempt that was killed.
    shutil.rmtree(beside, ignore_errors=True)
    make_private(beside)
    try:
        remembered = _fill(backup, beside, now, fault)
        if not accept(remembered):
            return False
        fault("restore:before:placed")
        _put(beside, state)
        fault("restore:after:placed")
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return True


def _require_no_other(folder: Path, known: tuple[str, ...], hint: str | None = None) -> None:
    """Raises FolderNotEmpty if it is no folder, or has files whose names begin otherwise than those."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FolderNotEmpty(f"{folder} is not a folder, or is a link to one", hint=hint)
    names = [entry.name for entry in folder.iterdir()] if folder.exists() else []
    strange = sorted(name for name in names if not name.startswith(known))
    if strange:
        raise FolderNotEmpty(f"{folder} is in use: it has {', '.join(strange[:3])}", hint=hint)


def _fill(backup: Backup, folder: Path, now: Callable[[], datetime], fault: FaultPoint) -> BackupSummary:
    manifest = backup.manifest
    for name in (FILE, RULES_FILE, REGISTRATIONS, JOURNAL):
        if name in backup.files:
            write_private(folder / name, backup.files[name])
    write_private(folder / BORN, f"{now().isoformat()}\n".encode())
    _require_sound(folder / JOURNAL, manifest.entries, manifest.head)
    try:
        with Journal(folder, network=manifest.network, now=now, fault=fault) as journal:
            unclear = len(journal.ids([State.SIGNING, State.INTERRUPTED]))
            undelivered = len(journal.ids(NOT_TAKEN))
            journal.restore(manifest.made_at)
            pins = tuple((pin.name, pin.vault.verification_code) for pin in journal.pins())
            signatures = journal.figures().signatures
    except _FORGED as error:
        raise BackupUnreadable(f"the journal in the backup cannot be read: {error}") from error
    if not all(_is_name(name) for name, _code in pins):
        raise BackupUnreadable("a vault in the backup has a name that is not one line of text")
    note_made(folder, manifest.made_at, fingerprint(backup))
    return BackupSummary(
        manifest, fingerprint(backup), pins, signatures, unclear, undelivered, tuple(_notes(backup, folder))
    )


def _is_name(name: str) -> bool:
    """Whether the platform's API allows the name: one line."""
    try:
        return TypeAdapter(Name).validate_python(name) == name
    except ValidationError:
        return False


def _notes(backup: Backup, folder: Path) -> Iterator[str]:
    """Remarks about rules and a configuration that were made on another machine."""
    rules, network = backup.files.get(RULES_FILE), backup.manifest.network
    if rules is None:
        yield "There are no rules in it"
    else:
        yield f"There are rules in it, of {len(rules.splitlines())} lines: read {RULES_FILE} afterwards"
    try:
        config = load_config(folder / FILE)
    except ConfigError as error:
        yield f"The configuration has to be corrected before signerd starts: {error}"
        return
    if config.network is not network:
        raise BackupUnreadable(f"the configuration in the backup is for {config.network}, not {network}")
    yield f"The platform is {config.platform.url}"
    if config.platform.ca_file is not None:
        yield f"The platform is trusted by the certificates in {config.platform.ca_file}"
    if not config.devices.sandbox:
        yield "The processes of devices are not confined: sandbox = false"
    if config.backup.scheduled:
        yield f"Backups go to {config.backup.folder}, for the public key {config.backup.recipient}"
    if config.checks.lowered:
        yield f"Lowered in the configuration: {', '.join(config.checks.lowered)}"
    if config.rules is not None:
        yield f"It names the rules {config.rules}: move {RULES_FILE} there, or take the line out"


def _require_sound(path: Path, entries: int, head: str) -> None:
    """Check that it has exactly the tables of a journal, and that its chain and records are intact.

    Raises BackupUnreadable.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as journal:
            journal.row_factory = sqlite3.Row
            journal.execute("PRAGMA trusted_schema = OFF")
            why = _why_no_journal(journal) or fault_of(journal)
            if why is None and audit_head(journal) != (entries, bytes.fromhex(head)):
                why = "its chain is not the one that the backup names"
            if why is None:
                why = _why_not_its_tables(journal) or why_unproven(journal)
            if why is None and journal.execute("PRAGMA foreign_key_check").fetchone() is not None:
                why = "a row belongs to nothing that is in it"
    except _FORGED as error:
        raise BackupUnreadable(f"the journal in the backup cannot be read: {error}") from error
    if why is not None:
        raise BackupUnreadable(f"the journal in the backup is damaged: {why}")


def _why_not_its_tables(journal: sqlite3.Connection) -> str | None:
    """S35: the chain's last entry names what stands beside it. Who makes up the whole chain is known by its
    head and by the fingerprint alone.
    """
    query = "SELECT kind, facts FROM audit ORDER BY sequence DESC LIMIT 1"
    last = journal.execute(query).fetchone()
    if last is None or last["kind"] != BACKUP:
        return "its chain does not end with the backup"
    named = json.loads(last["facts"]).get("tables")
    return None if named == digest_of_tables(journal) else "what stands beside its chain was changed"


def _why_no_journal(journal: sqlite3.Connection) -> str | None:
    """Why the schema is not a journal's: a foreign trigger or view could falsify what is read."""
    version = int(journal.execute("PRAGMA user_version").fetchone()[0])
    if version != VERSION:
        return f"it is of version {version}, and this signerd reads version {VERSION}"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate(made)
        wanted = [tuple(row) for row in made.execute(_SCHEMA)]
    schema = [tuple(row) for row in journal.execute(_SCHEMA)]
    return None if schema == wanted else f"its tables are not those of version {version}"


def _put(beside: Path, state: Path) -> None:
    """rename(2) replaces an empty folder atomically, and only an empty one."""
    state.parent.mkdir(parents=True, exist_ok=True)
    try:
        if state.exists():
            with held(state):
                (state / LOCK).unlink()
                beside.rename(state)
        else:
            beside.rename(state)
    except OSError as error:
        raise FolderNotEmpty(
            f"{state} cannot be put in place: {os.strerror(error.errno or 0)}",
            hint="It must be missing, or an empty folder that you own and not a mount point.",
        ) from error
    sync_folder(state.parent)
