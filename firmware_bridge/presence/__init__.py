"""Noticing devices without opening them or sending them anything.

A scan that opens devices breaks a signing that another program runs on one (a Coldcard's session, a Trezor's
reply). So the kernel is asked: for its listing of the bus, and whether an emulator's address is free.
"""

import asyncio
import sys
from collections.abc import Collection, Sequence

from firmware_bridge.model import Endpoint, Listing, Sighting
from firmware_bridge.presence.endpoints import endpoint_listing
from firmware_bridge.presence.usb import sysfs_listing

__all__ = ["endpoint_listing", "sysfs_listing", "usb_listing"]


def usb_listing() -> Listing:
    """USB devices: from sysfs on Linux, from hidapi, libusb and pyserial elsewhere."""
    return sysfs_listing() if sys.platform == "linux" else _libusb_listing


async def _libusb_listing(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
    from firmware_bridge.presence.libusb import list_usb

    return await asyncio.to_thread(list_usb)
