"""Other programs: which one has a device open that could not be opened or used (on Linux), and taking turns
with programs that do the same.

The kernel shows what the processes of the same user have open. A program of another user is not found.
"""

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Final

from firmware_bridge import errors
from firmware_bridge.faults import clean_detail
from firmware_bridge.model import Endpoint
from firmware_bridge.presence.usb import device_nodes

FindHolder = Callable[[Endpoint], Awaitable[str | None]]

_SECONDS: Final = 0.5
_PROC: Final = Path("/proc")
# A name is shown in a sentence on a screen.
_MAX_NAME: Final = 40
# Up from a worker: its fork server, and the program.
_GENERATIONS: Final = 3

# File names of programs (or of their scripts), in lower case, and their names for people.
PROGRAMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ledger-live-desktop": "Ledger Live",
        "ledger-live": "Ledger Live",
        "ledger-wallet": "Ledger Wallet",
        "ledger-wallet-desktop": "Ledger Wallet",
        "trezor-suite": "Trezor Suite",
        "trezord": "Trezor Bridge",
        "trezord-go": "Trezor Bridge",
        "sparrow": "Sparrow",
        "electrum": "Electrum",
        "specter": "Specter",
        "specter-desktop": "Specter",
        "specterd": "Specter",
        "hwi": "HWI",
        "hwi.py": "HWI",
        "hwi-qt": "HWI",
        "hwi-qt.py": "HWI",
        "bitcoin-qt": "Bitcoin Core",
        "bitcoind": "Bitcoin Core",
        "bitboxapp": "BitBoxApp",
        "bitbox": "BitBoxApp",
        "nunchuk-qt": "Nunchuk",
        "liana-gui": "Liana",
        "wassabee": "Wasabi Wallet",
        "green": "Blockstream Green",
        "ckcc": "ckcc",
        "chrome": "Chrome",
        "chromium": "Chromium",
        "brave": "Brave",
        "firefox": "Firefox",
        "gpg-agent": "GnuPG",
        "brltty": "brltty",
        "signerd": "another signerd",
    }
)


async def holder_of(endpoint: Endpoint) -> str | None:
    """The name of the other program that has the device open; None if none is found in time."""
    try:
        # Reading about a process that hangs in the kernel may block.
        async with asyncio.timeout(2 * _SECONDS):
            return await asyncio.to_thread(find, endpoint)
    except TimeoutError:
        return None


def find(endpoint: Endpoint, *, proc: Path = _PROC) -> str | None:
    """As `holder_of`, blocking for at most half a second."""
    # An emulator's clients are not looked for.
    nodes = () if endpoint.emulated else device_nodes(endpoint)
    try:
        wanted = frozenset(map(str, nodes))
        return _name_of_holder(wanted, proc, time.monotonic() + _SECONDS) if wanted else None
    except (OSError, ValueError, IndexError):
        # No such folder on this system, or a process ended while it was read.
        return None


def _name_of_holder(wanted: frozenset[str], proc: Path, until: float) -> str | None:
    ours = os.getpid()
    for process in proc.iterdir():
        if time.monotonic() > until:
            return None
        if process.name.isdigit() and _has_open(process, wanted) and not _descends(process, ours, proc):
            return _name_of_program(process, proc)
    return None


def _name_of_program(process: Path, proc: Path) -> str:
    """A worker gets the name of the program that started it: another signerd's is its fork server's child."""
    near = process
    for _ in range(_GENERATIONS):
        if (known := _known_name(near)) is not None:
            return known
        near = proc / str(_parent(near))
    # Its own name may be any text: cleaned and cut.
    names = [clean_detail(Path(name).name) for name in _names(process)]
    return next(filter(None, reversed(names)), "another program")[:_MAX_NAME]


def _has_open(process: Path, wanted: frozenset[str]) -> bool:
    try:
        with os.scandir(process / "fd") as descriptors:
            return any(_link(descriptor.path) in wanted for descriptor in descriptors)
    except OSError:
        # Another user's process, or it has ended.
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of them
    except OSError:
        return ""


def _descends(process: Path, ancestor: int, proc: Path) -> bool:
    """Whether it is this process or its descendant: our workers are the fork server's children."""
    number = int(process.name)
    while number > 1 and number != ancestor:
        number = _parent(proc / str(number))
    return number == ancestor


def _parent(process: Path) -> int:
    try:
        status = (process / "stat").read_text(errors="replace")
    except OSError:
        return 0
    # pid (name) state ppid …; the name may contain a parenthesis.
    return int(status.rpartition(")")[2].split()[1])


def _known_name(process: Path) -> str | None:
    names = (Path(name).name.lower() for name in _names(process))
    return next((PROGRAMS[name] for name in names if name in PROGRAMS), None)


def _names(process: Path) -> Iterator[str]:
    """The executable, the first two arguments (the second may be an interpreter's script), and the process's
    name.
    """
    yield _link(str(process / "exe")).removesuffix(" (deleted)")
    for file in ("cmdline", "comm"):
        try:
            text = (process / file).read_text(errors="replace")
        except OSError:
            continue
        yield from text.strip("\0\n").split("\0")[:2]


# Two programs disturb each other on a device: the second one's first request takes a Coldcard's session from
# the first, and ends a question on an emulator. So programs that know each other take turns for each
# operation.
Turn = Callable[[Endpoint], AbstractContextManager[None]]
"""Held while a device is used. Raises Busy at once if another program holds it."""

# It is shown in a sentence on a screen.
_MAX_HOLDER: Final = 120


def no_turns(_endpoint: Endpoint) -> AbstractContextManager[None]:
    return nullcontext()


def turns_in(folder: Path, name: str) -> Turn:
    """Turns by file locks in a folder that only this user can enter. `name` is what other programs show.

    The kernel releases the lock of a program that is killed.
    """

    @contextmanager
    def turn(endpoint: Endpoint) -> Iterator[None]:
        if sys.platform == "win32":
            raise OSError("turns need Unix")
        import fcntl

        place = folder / hashlib.sha256(str(endpoint).encode()).hexdigest()[:32]
        with os.fdopen(os.open(place, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = clean_detail(file.read(_MAX_HOLDER * 4).decode(errors="replace"))
                raise errors.Busy(f"In use by {(holder or 'another program')[:_MAX_HOLDER]}.") from None
            file.truncate(0)
            file.write(name.encode())
            file.flush()
            yield

    return turn
