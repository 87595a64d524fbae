"""The state folder: one owner, one daemon at a time, and nothing in it that others can read (L12)."""

import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from signerd.errors import AlreadyRunning, JournalUnwritable, UnsafeFolder

LOCK = "lock"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class StateFolder:
    """A folder that is held exclusively until ``release``, or until the process ends in any way."""

    path: Path
    _lock: int

    @classmethod
    def hold(cls, path: Path) -> Self:
        """Create or check the folder and take its lock.

        Raises:
            UnsafeFolder: a symbolic link, another owner, or open to others. AlreadyRunning: somebody holds it.
            JournalUnwritable: it cannot be created.
        """
        make_private(path)
        lock = _open_private(path / LOCK)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise AlreadyRunning(f"another signerd works on {path}") from None
        return cls(path, lock)

    def release(self) -> None:
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.release()


def make_private(path: Path) -> None:
    """Make the folder where there is none; accept an existing one only where it is ours alone.

    Raises:
        UnsafeFolder, JournalUnwritable: as ``StateFolder.hold``.
    """
    try:
        path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise JournalUnwritable(f"{path} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFolder(f"{path} is not a folder, or is a link to one")
    if found.st_uid != os.getuid():
        raise UnsafeFolder(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise UnsafeFolder(f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o})")


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


def _open_private(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError as error:
        raise UnsafeFolder(f"{path} cannot be opened: {error.strerror}") from error
