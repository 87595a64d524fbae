"""Folders and files that only their owner can read; and reading any file up to a bound."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
# Refuses a symbolic link.
NO_LINK: Final = os.O_NOFOLLOW


def is_ours(status: os.stat_result) -> bool:
    """Whether this user owns the file of this status."""
    return status.st_uid == os.getuid()


def is_open(status: os.stat_result) -> bool:
    """Whether other users may do anything with it."""
    return bool(stat.S_IMODE(status.st_mode) & 0o077)


def folder_fault(path: Path) -> str | None:
    """Make the folder if it is missing. Returns why an existing one is not private, or None. Raises
    OSError.
    """
    path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is not a folder, or is a link to one"
    if not is_ours(status):
        return f"{path} belongs to another user"
    if is_open(status):
        return f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def written_by_others(path: Path) -> str | None:
    """Why other users can change this file, which decides what is done here; None where they cannot. A group
    may write where it is the user's own. Raises OSError.
    """
    status = path.stat()
    if status.st_uid not in {os.getuid(), 0}:
        return f"{path} belongs to another user"
    shared = stat.S_IWOTH if status.st_gid == os.getgid() else stat.S_IWOTH | stat.S_IWGRP
    if not status.st_mode & shared:
        return None
    return f"{path} can be written by other users (mode {stat.S_IMODE(status.st_mode):o})"


def read_bounded(path: Path, most: int) -> bytes:
    """A file's content, whatever its mode. Raises OSError: EFBIG where it has more than ``most`` bytes."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def write_private(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Replace a file atomically, readable by its owner only, and synced to disk when this returns.
    ``content``: whole, or in pieces that are written as they come.
    """
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, PRIVATE_FILE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_new(path: Path, content: bytes | Iterable[bytes]) -> None:
    """As `write_private`, for a file that a person names: raises FileExistsError where one is there."""
    for one in (path, path.with_name(path.name + ".new")):
        if os.path.lexists(one):
            raise FileExistsError(errno.EEXIST, f"{one.name} is there already", str(one))
    write_private(path, content)


def sync_folder(path: Path) -> None:
    """Sync a folder: a rename is on disk only when its folder is."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take(file: int, *, shared: bool = False) -> None:
    """Raises OSError where another process holds it."""
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
