"""Files on a card: their names, and reading and writing them safely. The card may be removed at any moment,
and its files may be hostile.
"""

import errno
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from firmware_bridge.airgap.transfer import BadTransfer, CardFault, CardProtected, FileNameTaken, NoCard
from firmware_bridge.errors import BridgeError
from multisig import Psbt

_TEMPORARY: Final = ".part.tmp"


def read(path: Path, limit: int) -> bytes:
    """:raises BadTransfer: not a regular file, or more than `limit` bytes; then no more of it was read.
    :raises BridgeError: the card's own outcomes.
    """
    with _outcomes():
        # Non-blocking: opening a pipe would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            return _read(descriptor, limit)
        finally:
            os.close(descriptor)


def _read(descriptor: int, limit: int) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise BadTransfer("This is not a file.")
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        # The file may have grown meanwhile.
        content = b"" if status.st_size > limit else file.read(limit + 1)
    if status.st_size > limit or len(content) > limit:
        raise BadTransfer(f"This file has more than {limit} bytes.")
    return content


def write(folder: Path, name: str, content: bytes) -> Path:
    """Write a file atomically and flush it to the card. Writing the same content again does nothing.

    :raises FileNameTaken: another file has the name.
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


def _holds(target: Path, content: bytes) -> bool:
    if not os.path.lexists(target):
        return False
    with suppress(BridgeError, OSError):
        if read(target, len(content)) == content:
            return True
    raise FileNameTaken(target.name)


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
        # Unlike a rename, this fails if the name is taken.
        os.link(temporary, target)
    except FileExistsError:
        raise FileNameTaken(target.name) from None
    except OSError:
        # FAT has no links; a check before the rename is the best it allows.
        if os.path.lexists(target):
            raise FileNameTaken(target.name) from None
        temporary.rename(target)


def _settle(folder: Path) -> None:
    """Flush the folder, which holds the name. Not every system supports it."""
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
        # A name with a zero byte raises ValueError.
        if isinstance(error, OSError) and error.errno == errno.EROFS:
            raise CardProtected(detail=error.strerror) from error
        raise CardFault(getattr(error, "strerror", None) or str(error)) from error


# A Coldcard's screen shows little more, and the device appends `-part-12.psbt`.
MAX_LABEL: Final = 24
_TXID_DIGITS: Final = 8
_NOT_SAFE = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
# Reserved device names of Windows, with any extension.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.ASCII | re.IGNORECASE)
_NAMELESS: Final = "vault"


def safe_label(label: str) -> str:
    """A label in ASCII letters, digits and single hyphens: "Miete März / Q1" becomes "Miete-Marz-Q1"."""
    # More than the maximum length: NFKD may join several characters into one.
    plain = unicodedata.normalize("NFKD", label[: 4 * MAX_LABEL]).encode("ascii", "ignore").decode()
    name = _NOT_SAFE.sub("-", plain)[:MAX_LABEL].strip("-")
    return f"{name}-{_NAMELESS}" if _DEVICES.fullmatch(name) else name or _NAMELESS


def request_name(label: str, psbt: Psbt) -> str:
    """The label and the start of the txid, so that each request has a name of its own."""
    return f"{safe_label(label)}-{psbt.tx.txid[:_TXID_DIGITS]}.psbt"
