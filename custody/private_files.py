"""Folders and files that their owner alone can read."""

import os
import stat
from pathlib import Path
from typing import Final

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600


def folder_fault(path: Path) -> str | None:
    """Make the folder where there is none; why an existing one is not ours alone. Raises OSError."""
    path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a folder, or is a link to one"
    if found.st_uid != os.getuid():
        return f"{path} belongs to another user"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def write_private(path: Path, content: bytes) -> None:
    """Replace a file whole or not at all, readable by its owner only, and on the disk when this returns."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """A rename is on the disk only when its folder is."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
