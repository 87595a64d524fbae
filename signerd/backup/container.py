"""The decrypted content of a backup: a tar of a few files with known names and bounded sizes.

``age --decrypt FILE | tar --list`` shows it without signerd. Decryption does not authenticate it: anyone can
encrypt to a public key. Every size and name is checked before it is used.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from custody.common.private_files import PRIVATE_FILE
from custody.schemas.errors import fault_place, fault_words
from multisig import Network
from signerd.account.config import FILE, MAX_CONFIG_BYTES, RULES_FILE
from signerd.errors import BackupUnreadable
from signerd.journal.storage import JOURNAL

FORMAT: Final = 1
MANIFEST = "backup.json"
REGISTRATIONS = "registrations.json"
# Ten times the journal of a busy decade: 20 proposals of 10 kB on each working day. It is held in memory.
MAX_JOURNAL_BYTES = 1024 * 1024 * 1024
LIMITS: Mapping[str, int] = {
    MANIFEST: 64 * 1024,
    JOURNAL: MAX_JOURNAL_BYTES,
    FILE: MAX_CONFIG_BYTES,
    RULES_FILE: MAX_CONFIG_BYTES,
    REGISTRATIONS: 1024 * 1024,
}
# With each file's header blocks and padding, and the padding of the archive.
MAX_BYTES = sum(LIMITS.values()) + len(LIMITS) * 4 * tarfile.BLOCKSIZE + tarfile.RECORDSIZE

_Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Version = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z.+-]{1,40}$")]


class Manifest(BaseModel):
    """``entries``, ``head``: of the audit chain in the journal. ``network``: the configuration's."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = FORMAT
    signerd: _Version
    made_at: AwareDatetime
    network: Network
    entries: Annotated[int, Field(ge=0)]
    head: _Hash


class _Format(BaseModel):
    format: int


@dataclass(frozen=True)
class Backup:
    """``files``: the contents by their names in the state folder; the journal and the configuration are
    there.
    """

    manifest: Manifest
    files: Mapping[str, bytes] = field(repr=False)


def fingerprint(backup: Backup) -> str:
    """A SHA-256 over the whole content, as 64 hexadecimal digits."""
    contents = {MANIFEST: backup.manifest.model_dump_json().encode(), **backup.files}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def pack(backup: Backup) -> bytes:
    """Raises BackupUnreadable where a file is larger than any that is restored."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, MANIFEST, backup.manifest.model_dump_json(indent=1).encode(), backup.manifest.made_at)
        for name, data in sorted(backup.files.items()):
            _add(tar, name, data, backup.manifest.made_at)
    return content.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, made_at: datetime) -> None:
    if len(data) > LIMITS[name]:
        raise BackupUnreadable(f"{name} has {len(data):,} bytes, and a backup holds {LIMITS[name]:,} of it")
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), PRIVATE_FILE, int(made_at.timestamp())
    tar.addfile(member, io.BytesIO(data))


def unpack(content: bytes) -> Backup:
    """Raises BackupUnreadable for anything but a backup of a known format."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            files = dict(_file(tar, member) for member in _members(tar))
    except (tarfile.TarError, ValueError, RecursionError) as error:
        # RecursionError: tarfile parses extended headers recursively.
        raise BackupUnreadable(f"this is not a backup of signerd: {error}") from None
    missing = {MANIFEST, JOURNAL, FILE} - files.keys()
    if missing:
        raise BackupUnreadable(f"the backup has no {', '.join(sorted(missing))}")
    manifest = _manifest(files.pop(MANIFEST))
    return Backup(manifest, files)


def _members(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Raises ValueError at the first member that is not allowed."""
    known: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        # A sparse file states its own size.
        if not member.isreg() or member.issparse() or member.name not in LIMITS:
            raise ValueError("it has a file that does not belong to a backup")
        if member.name in known or member.size > LIMITS[member.name]:
            raise ValueError(f"{member.name} is there twice, or larger than it may be")
        known[member.name] = member
    return list(known.values())


def _file(tar: tarfile.TarFile, member: tarfile.TarInfo) -> tuple[str, bytes]:
    opened = tar.extractfile(member)
    data = b"" if opened is None else opened.read(member.size + 1)
    if len(data) != member.size:
        raise ValueError(f"{member.name} is truncated")
    return member.name, data


def _manifest(data: bytes) -> Manifest:
    try:
        version = _Format.model_validate_json(data).format
        if version > FORMAT:
            raise BackupUnreadable(
                f"the backup is of format {version}, and this signerd reads format {FORMAT}",
                hint="Restore it with the signerd that made it, or a newer one.",
            )
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        fault = f"{fault_place(first)} {fault_words(first)}".strip()
        raise BackupUnreadable(f"the backup's {MANIFEST} cannot be read: {fault}") from None
