"""Reading and writing a card as if it could be torn out at any moment, and were written by a stranger."""

import errno
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from firmware_bridge.airgap.transfer import CardFault, CardProtected, NameTaken, NoCard, Unreadable
from firmware_bridge.errors import BridgeError
from multisig import Psbt

# FOLDED from firmware_bridge/airgap/names.py: Names of files on a card: what FAT takes, what a person recognises, and what a Coldcard makes of them.


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


# A Coldcard's screen shows little more, and it appends `-part-12.psbt`.
MAX_LABEL: Final = 24
_TXID_DIGITS: Final = 8
_NOT_SAFE = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
# Names that DOS gave to things: Windows opens the thing, with any ending.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.ASCII | re.IGNORECASE)
_NAMELESS: Final = "vault"


def safe_label(label: str) -> str:
    """ASCII letters, digits and single hyphens, from whatever a person wrote: "Miete März / Q1" becomes "Miete-Marz-Q1"."""
    # Twice the length, and some: what is folded may take several characters for one.
    plain = unicodedata.normalize("NFKD", label[: 4 * MAX_LABEL]).encode("ascii", "ignore").decode()
    name = _NOT_SAFE.sub("-", plain)[:MAX_LABEL].strip("-")
    return f"{name}-{_NAMELESS}" if _DEVICES.fullmatch(name) else name or _NAMELESS


def request_name(label: str, psbt: Psbt) -> str:
    """The label, and the beginning of the transaction's id: the same request has the same name, and no other one has it."""
    return f"{safe_label(label)}-{psbt.tx.txid[:_TXID_DIGITS]}.psbt"


def answers_among(names: Iterable[str], request: str) -> tuple[str, ...]:
    """Those that a Coldcard gives to answers to this request, the latest first.

    `-part` while signatures are missing, `-signed` when it has them all, and a number where that was taken. Its clock is not
    right, if it has one, so nothing but the name tells which is later. FAT keeps no case.
    """
    base = request.rpartition(".")[0] or request
    # A Coldcard takes `-part` out of the name before it appends it, wherever it stands.
    bases = "|".join(map(re.escape, (base, base.replace("-part", ""))))
    pattern = re.compile(rf"(?:{bases})-(part|signed)(?:-([0-9]{{1,4}}))?\.psbt", re.ASCII | re.IGNORECASE)
    ranked = [
        (match[1].lower() == "signed", int(match[2] or 1), name)
        for name in names
        if (match := pattern.fullmatch(name))
    ]
    return tuple(name for _, _, name in sorted(ranked, reverse=True))
