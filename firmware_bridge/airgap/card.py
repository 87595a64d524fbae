"""Reading and writing a card as if it could be torn out at any moment, and were written by a stranger."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from firmware_bridge.airgap.outcomes import CardFault, CardProtected, NameTaken, NoCard, Unreadable
from firmware_bridge.errors import BridgeError

_TEMPORARY: Final = ".part.tmp"
# A folder of a card with more than this is searched no further.
MAX_ENTRIES: Final = 10_000


def read(path: Path, limit: int) -> bytes:
    """:raises Unreadable: it is no file, or has more than `limit` bytes; then no more of it was read.
    :raises BridgeError: the card's own outcomes.
    """
    with _outcomes():
        # Without waiting: a pipe of that name would keep us for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            return _read(descriptor, limit)
        finally:
            os.close(descriptor)


def _read(descriptor: int, limit: int) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("This is no file.")
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        # Not what it says of its size alone: it may grow.
        content = b"" if status.st_size > limit else file.read(limit + 1)
    if status.st_size > limit or len(content) > limit:
        raise Unreadable(f"This file has more than the {limit} bytes that are read.")
    return content


def write(folder: Path, name: str, content: bytes) -> Path:
    """The whole file under its name, on the card itself and not only in memory; or nothing under that name.

    The same content again is no second writing.

    :raises NameTaken: another file has the name.
    :raises BridgeError: the card's own outcomes.
    """
    target = folder / name
    with _outcomes():
        if _holds(target, content):
            return target
        temporary = _write_aside(folder, content)
        try:
            _give_name(temporary, target)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        _settle(folder)
    return target


def entries(folder: Path) -> list[str]:
    """The names in a folder.

    :raises BridgeError: the card's own outcomes.
    """
    with _outcomes(), os.scandir(folder) as found:
        return [entry.name for entry, _ in zip(found, range(MAX_ENTRIES), strict=False)]


def _holds(target: Path, content: bytes) -> bool:
    if not os.path.lexists(target):
        return False
    with suppress(BridgeError, OSError):
        if read(target, len(content)) == content:
            return True
    raise NameTaken(target.name)


def _write_aside(folder: Path, content: bytes) -> Path:
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=_TEMPORARY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)


def _give_name(temporary: Path, target: Path) -> None:
    try:
        # Unlike a renaming, it fails where the name was taken meanwhile.
        os.link(temporary, target)
    except FileExistsError:
        raise NameTaken(target.name) from None
    except OSError:
        # FAT has no links. Between looking and renaming there is a moment, which is the best that FAT offers.
        if os.path.lexists(target):
            raise NameTaken(target.name) from None
        temporary.rename(target)


def _settle(folder: Path) -> None:
    """The name is in the folder, which is written at another time than the file. Not every system can be told to."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _outcomes() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoCard(detail=error.strerror) from error
    except PermissionError as error:
        raise CardProtected(detail=error.strerror) from error
    except (OSError, ValueError) as error:
        # A name with a zero byte is a ValueError.
        if isinstance(error, OSError) and error.errno == errno.EROFS:
            raise CardProtected(detail=error.strerror) from error
        raise CardFault(getattr(error, "strerror", None) or str(error)) from error
