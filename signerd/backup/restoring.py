"""A state folder from a backup: made beside its place, checked whole, and put there in one step.

A process that is killed leaves an empty folder or a whole one. Nothing of a backup is used before its size,
its tables, its chain and its records were checked.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from custody.private_files import sync_folder, write_private
from custody.schemas.common import Name
from multisig import MultisigError, Network
from signerd.account.config import FILE, RULES_FILE, load_config
from signerd.backup.container import REGISTRATIONS, Backup, fingerprint
from signerd.backup.last import NAME, note_made
from signerd.core.states import AT_THE_DEVICE, NOT_TAKEN, State
from signerd.core.values import Limits
from signerd.errors import BackupUnreadable, ConfigError, FolderNotEmpty, JournalError, SignerdError
from signerd.journal import Journal
from signerd.journal.chain import utc_now
from signerd.journal.rows import audit_head
from signerd.journal.schema import MIGRATIONS, migrate
from signerd.journal.storage import (
    BORN,
    JOURNAL,
    LOCK,
    StateFolder,
    fault_of,
    make_private,
)
from signerd.runtime import FaultPoint, no_fault

BESIDE = ".restoring"
# What begins the names of all that is written there, with SQLite's own beside the journal.
_WRITTEN = (FILE, RULES_FILE, REGISTRATIONS, JOURNAL, BORN, LOCK, NAME)
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


@dataclass(frozen=True)
class Remembered:
    """What the person compares before it is put in place.

    ``pins``: name and verification code of each. ``unclear``: proposals that may have been signed on a
    device, which is not repeated unasked. ``undelivered``: signatures that the platform did not have, and
    which are not submitted. ``notes``: what of the configuration is to be put right first.
    """

    network: Network
    made_at: datetime
    signerd: str
    entries: int
    head: str
    fingerprint: str
    pins: tuple[tuple[str, str], ...]
    signatures: int
    unclear: int
    undelivered: int
    notes: tuple[str, ...]


def restore(
    backup: Backup,
    state: Path,
    accept: Callable[[Remembered], bool],
    *,
    now: Callable[[], datetime] = utc_now,
    fault: FaultPoint = no_fault,
) -> bool:
    """Put it at ``state``, which is not there yet or empty, once ``accept`` says yes; False where it says no.

    Raises FolderNotEmpty, BackupUnreadable, leaves of JournalError: nothing is there then.
    """
    _require_empty(state)
    beside = state.with_name(state.name + BESIDE)
    _require_ours(beside)
    # What an attempt left that was killed.
    shutil.rmtree(beside, ignore_errors=True)
    make_private(beside)
    try:
        remembered = _filled(backup, beside, now, fault)
        if not accept(remembered):
            return False
        fault("restore:before:placed")
        _put(beside, state)
        fault("restore:after:placed")
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return True


def _require_empty(state: Path) -> None:
    """Raises FolderNotEmpty: what is there is not overwritten."""
    if state.is_symlink() or (state.exists() and not state.is_dir()):
        raise FolderNotEmpty(f"{state} is no folder, or is a link to one")
    found = sorted(entry.name for entry in state.iterdir() if entry.name != LOCK) if state.exists() else []
    if found:
        raise FolderNotEmpty(f"{state} is in use: it has {', '.join(found[:3])}")


def _require_ours(beside: Path) -> None:
    """Raises FolderNotEmpty: it has what no attempt to restore leaves there, and is not removed."""
    if beside.is_symlink() or (beside.exists() and not beside.is_dir()):
        raise FolderNotEmpty(f"{beside} is no folder", hint="Move it away: it is needed for a moment.")
    names = [entry.name for entry in beside.iterdir()] if beside.exists() else []
    strange = sorted(name for name in names if not name.startswith(_WRITTEN))
    if strange:
        raise FolderNotEmpty(
            f"{beside} has {', '.join(strange[:3])}", hint="Move it away: it is needed for a moment."
        )


def _filled(backup: Backup, folder: Path, now: Callable[[], datetime], fault: FaultPoint) -> Remembered:
    manifest = backup.manifest
    for name in (FILE, RULES_FILE, REGISTRATIONS, JOURNAL):
        if name in backup.files:
            write_private(folder / name, backup.files[name])
    write_private(folder / BORN, f"{now().isoformat()}\n".encode())
    _require_sound(folder / JOURNAL, manifest.entries, manifest.head)
    try:
        with Journal(folder, network=manifest.network, limits=Limits(), now=now, fault=fault) as journal:
            unclear = len(journal.ids([*AT_THE_DEVICE, State.INTERRUPTED]))
            undelivered = len(journal.ids(NOT_TAKEN))
            journal.restore(manifest.made_at)
            pins = tuple((pin.name, pin.vault.verification_code) for pin in journal.pins())
            signatures = journal.figures().signatures
    except JournalError as error:
        raise BackupUnreadable(f"the journal in the backup cannot be used: {error}") from error
    except (
        sqlite3.DatabaseError,
        MultisigError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise BackupUnreadable(f"the journal in the backup cannot be read: {error}") from error
    if not all(_is_name(name) for name, _code in pins):
        raise BackupUnreadable("a vault in the backup has a name that is no line of text")
    note_made(folder, manifest.made_at)
    return Remembered(
        manifest.network,
        manifest.made_at,
        manifest.signerd,
        manifest.entries,
        manifest.head,
        fingerprint(backup),
        pins,
        signatures,
        unclear,
        undelivered,
        (_rules_note(backup), *_notes(folder, manifest.network)),
    )


def _is_name(name: str) -> bool:
    """As the platform may give them: one line."""
    try:
        return TypeAdapter(Name).validate_python(name) == name
    except ValidationError:
        return False


def _rules_note(backup: Backup) -> str:
    rules = backup.files.get(RULES_FILE)
    if rules is None:
        return "There are no rules in it"
    return f"There are rules in it, of {len(rules.splitlines())} lines: read {RULES_FILE} afterwards"


def _notes(folder: Path, network: Network) -> Iterator[str]:
    """A configuration of another machine may name what is not here."""
    try:
        config = load_config(folder / FILE)
    except ConfigError as error:
        yield f"The configuration has to be put right before signerd starts: {error}"
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
    """Its tables are those of a journal and nothing else, and its chain and records are whole.

    Raises BackupUnreadable.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as journal:
            journal.row_factory = sqlite3.Row
            journal.execute("PRAGMA trusted_schema = OFF")
            why = _why_no_journal(journal) or fault_of(journal)
            if why is None and audit_head(journal) != (entries, bytes.fromhex(head)):
                why = "its chain is not the one that the backup names"
    except (sqlite3.DatabaseError, SignerdError) as error:
        raise BackupUnreadable(f"the journal in the backup cannot be read: {error}") from error
    if why is not None:
        raise BackupUnreadable(f"the journal in the backup is not whole: {why}")


def _why_no_journal(journal: sqlite3.Connection) -> str | None:
    """A trigger or a view that is none of ours could say anything of what is stored."""
    version = int(journal.execute("PRAGMA user_version").fetchone()[0])
    if not 0 < version <= len(MIGRATIONS):
        return f"it is of version {version}, and this signerd knows up to {len(MIGRATIONS)}"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate(made, MIGRATIONS[:version])
        wanted = [tuple(row) for row in made.execute(_SCHEMA)]
    found = [tuple(row) for row in journal.execute(_SCHEMA)]
    return None if found == wanted else f"its tables are not those of version {version}"


def _put(beside: Path, state: Path) -> None:
    """rename(2) takes the place of an empty folder at once, and of no other."""
    state.parent.mkdir(parents=True, exist_ok=True)
    try:
        if state.exists():
            with StateFolder.hold(state):
                (state / LOCK).unlink()
                beside.rename(state)
        else:
            beside.rename(state)
    except OSError as error:
        raise FolderNotEmpty(
            f"{state} cannot be put in place: {os.strerror(error.errno or 0)}",
            hint="It must be an empty folder that you own, or not be there, and no mount point.",
        ) from error
    sync_folder(state.parent)
