"""When to look for devices again: at once if udev reports a change, else after a short while.

A message only makes the bridge look, so that a lost or a forged one costs one look.
"""

import asyncio
import errno
import logging
import os
import sys
from pathlib import Path
from typing import Final, Protocol

# Plugging in makes a dozen messages: the device, its interfaces, their drivers, the device files.
_SETTLING_SECONDS: Final = 0.1
_POLLING_SECONDS: Final = 2.0
# With udev, an occasional look catches what it did not report: a changed seat, a lost message.
_RARELY_SECONDS: Final = 15.0
_MESSAGE_BYTES: Final = 1 << 14
_SUBSYSTEMS: Final = ("usb", "hidraw", "tty")
# Without udevd, as in most containers, there are no messages. libudev makes the same test.
UDEV_CONTROL: Final = Path("/run/udev/control")
_log = logging.getLogger(__name__)


class Hotplug(Protocol):
    """`patience`: the longest time between two looks at the bus."""

    @property
    def patience(self) -> float: ...

    async def wait(self, seconds: float) -> None:
        """Return when something was plugged in or out, or after this time."""

    def close(self) -> None: ...


class Polling:
    """Without messages: looks at regular times."""

    def __init__(self, patience: float = _POLLING_SECONDS) -> None:
        self.patience = patience

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing is open."""


class Monitor(Protocol):
    """A non-blocking socket with one message for each change (`pyudev.Monitor`)."""

    def fileno(self) -> int: ...


class Udev:
    """udev's messages, received on the event loop and not parsed."""

    def __init__(self, monitor: Monitor, settling: float = _SETTLING_SECONDS) -> None:
        self.patience = _RARELY_SECONDS
        self._settling = settling
        # The monitor closes its socket when it is garbage collected.
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
            # Too many at once: some are lost, but the bridge looks anyway.
            if error.errno != errno.ENOBUFS:
                self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self.patience = _POLLING_SECONDS
        self.close()
        _log.info("udev no longer reports what is plugged in (%s): looking every few seconds", why)


async def best_hotplug(control: Path = UDEV_CONTROL) -> Hotplug:
    """Udev where it works, else polling."""
    try:
        # Finding libudev runs a program.
        monitor = await asyncio.to_thread(_monitor, control)
    except (ImportError, OSError) as error:
        _log.info("udev does not report what is plugged in (%s): looking every few seconds", error)
        return Polling()
    return Polling() if monitor is None else Udev(monitor)


async def no_bus() -> Hotplug:
    """For a bridge without USB devices."""
    return Polling(_RARELY_SECONDS)


def _monitor(control: Path) -> Monitor | None:
    """None where no udevd runs.

    :raises ImportError: no pyudev, or no libudev on this system.

    :raises OSError: the socket cannot be opened.
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
