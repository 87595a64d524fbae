"""When to look again: at once where the system tells that something was plugged in, else after a short while.

What is told is never believed: it only makes the bridge look. So a lost or a forged message costs one look.
"""

import asyncio
import errno
import logging
import os
import sys
from pathlib import Path
from typing import Final, Protocol

# One plug makes a dozen messages: the device, its interfaces, their drivers, the device files.
_SETTLING_SECONDS: Final = 0.1
_POLLING_SECONDS: Final = 2.0
# Where the system tells, a look in between catches what it did not tell: a seat that changed hands, a message lost.
_RARELY_SECONDS: Final = 15.0
_MESSAGE_BYTES: Final = 1 << 14
_SUBSYSTEMS: Final = ("usb", "hidraw", "tty")
# libudev listens in vain where no udevd runs, as in most containers; its own test is the same.
UDEV_CONTROL: Final = Path("/run/udev/control")
_log = logging.getLogger(__name__)


class Hotplug(Protocol):
    """`patience`: for how long the bus needs no look if nothing is told."""

    @property
    def patience(self) -> float: ...

    async def wait(self, seconds: float) -> None:
        """Until something was plugged in or out, or this time is over."""

    def close(self) -> None: ...


class Polling:
    """Nobody tells anything."""

    def __init__(self, patience: float = _POLLING_SECONDS) -> None:
        self.patience = patience

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing is open."""


class Monitor(Protocol):
    """A socket that does not block, with one message for each change (`pyudev.Monitor`)."""

    def fileno(self) -> int: ...


class Udev:
    """udev's messages, noticed on the event loop: no thread, and nothing is parsed."""

    def __init__(self, monitor: Monitor, settling: float = _SETTLING_SECONDS) -> None:
        self.patience = _RARELY_SECONDS
        self._settling = settling
        # The monitor closes its socket when nobody holds it any more.
        self._monitor = monitor
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(monitor.fileno(), self._read)

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._told.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._settling)
        self._told.clear()

    def close(self) -> None:
        self._loop.remove_reader(self._monitor.fileno())

    def _read(self) -> None:
        self._told.set()
        try:
            while os.read(self._monitor.fileno(), _MESSAGE_BYTES):
                pass
            self._give_up("it was closed")
        except BlockingIOError:
            return
        except OSError as error:
            # Too many at once: some are lost, and a look is due all the same.
            if error.errno != errno.ENOBUFS:
                self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self.patience = _POLLING_SECONDS
        self.close()
        _log.info("udev tells no longer what is plugged in (%s): looking every few seconds", why)


async def best_hotplug(control: Path = UDEV_CONTROL) -> Hotplug:
    """The best that this system has. Whatever is missing, polling does the same later."""
    try:
        # Finding libudev asks a program of the system.
        monitor = await asyncio.to_thread(_monitor, control)
    except (ImportError, OSError) as error:
        _log.info("udev does not tell what is plugged in (%s): looking every few seconds", error)
        return Polling()
    return Polling() if monitor is None else Udev(monitor)


async def no_bus() -> Hotplug:
    """For who looks after nothing that is plugged in."""
    return Polling(_RARELY_SECONDS)


def _monitor(control: Path) -> Monitor | None:
    """None where no udevd runs.

    :raises ImportError: no pyudev, or no libudev on this system.

    :raises OSError: the socket is not to be had.
    """
    if sys.platform != "linux" or not control.exists():
        return None
    import pyudev

    monitor = pyudev.Monitor.from_netlink(pyudev.Context())
    for subsystem in _SUBSYSTEMS:
        monitor.filter_by(subsystem)
    monitor.start()
    found: Monitor = monitor
    return found
