"""Writing a backup to a file."""

from datetime import UTC, datetime
from pathlib import Path

from signerd.backup.container import Manifest, fingerprint, unpack
from signerd.backup.last import note_made
from signerd.backup.making import make_backup
from signerd.backup.sealing import seal_for, seal_with
from signerd.errors import BackupNotMade
from signerd.journal.storage import write_new


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
        sealed = seal_with(content, passphrase)
    try:
        write_new(file, sealed)
    except OSError as error:
        raise BackupNotMade(f"{file} cannot be written: {error.strerror}") from error
    try:
        note_made(state, manifest.made_at)
    except OSError as error:
        raise BackupNotMade(
            f"{file} is written, but {state} cannot be written: {error.strerror}",
            hint="The backup is good. Look at the disk of the state folder.",
        ) from error
    return manifest, fingerprint(unpack(content))


def file_name(now: datetime) -> str:
    """The name of a scheduled backup."""
    return f"signerd-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.age"
