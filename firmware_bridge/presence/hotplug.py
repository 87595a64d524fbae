"""When to look for devices again: at once if udev reports a change, else after a short while.

A message only makes the bridge look, so that a lost or a forged one costs one look.
"""

import asyncio
import errno
import logging
import socket
import sys
from pathlib import Path
from typing import Final

# Plugging in makes a dozen messages: the device, its interfaces, their drivers, the device files.
_SETTLING_SECONDS: Final = 0.1
_POLLING_SECONDS: Final = 2.0
# With udev, an occasional look catches what it did not report: a changed seat, a lost message.
_RARELY_SECONDS: Final = 15.0
_MESSAGE_BYTES: Final = 1 << 14
_OF_DEVICES: Final = (b"SUBSYSTEM=usb\0", b"SUBSYSTEM=hidraw\0", b"SUBSYSTEM=tty\0")
# Without udevd, as in most containers, there are no messages. libudev makes the same test.
UDEV_CONTROL: Final = Path("/run/udev/control")
# linux/netlink.h; the group to which udevd repeats the kernel's messages when the files' permissions are set.
_KOBJECT_UEVENT: Final = 15
_UDEV_GROUP: Final = 2
_log = logging.getLogger(__name__)


class Hotplug:
    """When to look at the bus again. Without messages: at regular times, `patience` seconds apart."""

    def __init__(self, patience: float = _POLLING_SECONDS) -> None:
        self.patience = patience

    async def wait(self, seconds: float) -> None:
        """Return when something was plugged in or out, or after this time."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing is open."""


class Udev(Hotplug):
    """udev's messages on a non-blocking socket, one for each change, received on the event loop."""

    def __init__(self, messages: socket.socket, settling: float = _SETTLING_SECONDS) -> None:
        super().__init__(_RARELY_SECONDS)
        self._settling = settling
        self._messages = messages
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(messages.fileno(), self._read)

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._told.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._settling)
        self._told.clear()

    def close(self) -> None:
        if self._messages.fileno() >= 0:
            self._loop.remove_reader(self._messages.fileno())
            self._messages.close()

    def _read(self) -> None:
        try:
            while message := self._messages.recv(_MESSAGE_BYTES):
                if any(word in message for word in _OF_DEVICES):
                    self._told.set()
            self._give_up("it was closed")
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                # Too many at once: some are lost.
                self._told.set()
            else:
                self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self.patience = _POLLING_SECONDS
        self._told.set()
        self.close()
        _log.info("udev no longer reports what is plugged in (%s): looking every few seconds", why)


def best_hotplug(control: Path = UDEV_CONTROL) -> Hotplug:
    """Udev where it works, else polling."""
    if sys.platform != "linux" or not control.exists():
        return Hotplug()
    messages = None
    try:
        messages = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _KOBJECT_UEVENT)
        messages.setblocking(False)  # noqa: FBT003 - the signature is not ours
        messages.bind((0, _UDEV_GROUP))
    except OSError as error:
        _log.info("udev does not report what is plugged in (%s): looking every few seconds", error)
        if messages is not None:
            messages.close()
        return Hotplug()
    return Udev(messages)


def no_bus() -> Hotplug:
    """For a bridge without USB devices."""
    return Hotplug(_RARELY_SECONDS)
