"""Which program has a device that we cannot have: found out on Linux, once, when opening or using it has failed.

The kernel shows what the processes of this user have open; those of others it does not, and then nobody is named.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Final

from firmware_bridge import errors
from firmware_bridge.families import clean_detail
from firmware_bridge.model import Endpoint
from firmware_bridge.presence.endpoints import TABLES, host_and_port
from firmware_bridge.presence.kernel_sockets import ESTABLISHED, inet_sockets, loopback_hosts
from firmware_bridge.presence.usb import device_nodes

# FOLDED from firmware_bridge/turns.py: Taking turns at a device with other programs of the same person that do the same.
#
# A bus does not keep two programs apart everywhere: the second one's first look takes a Coldcard's session from the first, and
# ends what an emulator asks. So programs that know each other take a device's turn for each operation, and are told whose it is.


FindHolder = Callable[[Endpoint], Awaitable[str | None]]

_SECONDS: Final = 0.5
_PROC: Final = Path("/proc")
# A name stands in a sentence on a screen.
_MAX_NAME: Final = 40
# A worker, its fork server, the program.
_GENERATIONS: Final = 3

# File names of programs, in lower case, and what people call them. Those that run in an interpreter have their script's.
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
    """The name of the program that has it open, other than this one and its workers; None if nobody is found in time."""
    try:
        # The kernel may hold up whoever reads of a process that hangs in it.
        async with asyncio.timeout(2 * _SECONDS):
            return await asyncio.to_thread(find, endpoint)
    except TimeoutError:
        return None


def find(endpoint: Endpoint, *, proc: Path = _PROC, tables: Path = TABLES) -> str | None:
    """As `holder_of`, blocking for half a second at most."""
    try:
        wanted = _open_as(endpoint, tables)
        until = time.monotonic() + _SECONDS
        return _name_of_holder(wanted, proc, until) if wanted else None
    except (OSError, ValueError, IndexError):
        # No such tables here, or a process ended while they were read.
        return None


def _open_as(endpoint: Endpoint, tables: Path) -> frozenset[str]:
    """What a descriptor of a program that uses the device links to."""
    if endpoint.kind in {"udp", "tcp"}:
        return frozenset(f"socket:[{inode}]" for inode in _clients(endpoint, tables))
    if endpoint.emulated:
        # A Unix socket's client is bound to a path of its own, and the tables do not tell whom it talks to.
        return frozenset()
    return frozenset(str(node) for node in device_nodes(endpoint))


def _clients(endpoint: Endpoint, tables: Path) -> Iterator[int]:
    host, port = host_and_port(endpoint.place)
    hosts = loopback_hosts(host)
    for found in inet_sockets((tables / endpoint.kind).read_text(), [port]):
        if found.state == ESTABLISHED and found.remote_port == port and found.remote in hosts:
            yield found.inode


def _name_of_holder(wanted: frozenset[str], proc: Path, until: float) -> str | None:
    ours = os.getpid()
    for process in proc.iterdir():
        if time.monotonic() > until:
            return None
        if process.name.isdigit() and _has_open(process, wanted) and not _descends(process, ours, proc):
            return _name_of_program(process, proc)
    return None


def _name_of_program(process: Path, proc: Path) -> str:
    """A worker is called what the program is called that started it: another signerd's is its fork server's child."""
    near = process
    for _ in range(_GENERATIONS):
        if (known := _known_name(near)) is not None:
            return known
        near = proc / str(_parent(near))
    return program_name(process)


def _has_open(process: Path, wanted: frozenset[str]) -> bool:
    try:
        with os.scandir(process / "fd") as descriptors:
            return any(_link(descriptor.path) in wanted for descriptor in descriptors)
    except OSError:
        # Another user's, or gone.
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of them
    except OSError:
        return ""


def _descends(process: Path, ancestor: int, proc: Path) -> bool:
    """Whether it is this process or one that it started: our workers are the fork server's children."""
    number = int(process.name)
    while number > 1 and number != ancestor:
        number = _parent(proc / str(number))
    return number == ancestor


def _parent(process: Path) -> int:
    try:
        status = (process / "stat").read_text(errors="replace")
    except OSError:
        return 0
    # pid (name) state ppid …; a name may hold anything, also a parenthesis.
    return int(status.rpartition(")")[2].split()[1])


def program_name(process: Path) -> str:
    """What people call the program, else what it calls itself: any words at all, so they are cleaned and cut."""
    known = _known_name(process)
    if known is not None:
        return known
    names = [Path(name).name for name in _names(process)]
    own = next((cleaned for name in reversed(names) if (cleaned := clean_detail(name))), "another program")
    return own[:_MAX_NAME]


def _known_name(process: Path) -> str | None:
    names = (Path(name).name.lower() for name in _names(process))
    return next((PROGRAMS[name] for name in names if name in PROGRAMS), None)


def _names(process: Path) -> Iterator[str]:
    """The file it runs, its first two arguments (the second is an interpreter's script), and its own name."""
    yield _link(str(process / "exe")).removesuffix(" (deleted)")
    for file in ("cmdline", "comm"):
        try:
            text = (process / file).read_text(errors="replace")
        except OSError:
            continue
        yield from text.strip("\0\n").split("\0")[:2]


Turn = Callable[[Endpoint], AbstractContextManager[None]]
"""Held while the device is asked anything. Raises Busy, at once, where another program has it."""

# It stands in a sentence on a screen.
_MAX_HOLDER: Final = 120


def no_turns(_endpoint: Endpoint) -> AbstractContextManager[None]:
    return nullcontext()


def turns_in(folder: Path, name: str) -> Turn:
    """Turns by locks on files in a folder that only this person can enter. `name`: what others are told has the device.

    The kernel takes a lock back from a program that is killed.
    """

    @contextmanager
    def turn(endpoint: Endpoint) -> Iterator[None]:
        import fcntl  # Not on every system; whoever takes turns by files is on one that has it.

        place = folder / hashlib.sha256(str(endpoint).encode()).hexdigest()[:32]
        with place.open("a+b") as file:
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
