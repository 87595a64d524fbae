"""Noticing devices without opening any: what answers at the configured addresses, and what the bus lists.

A scan that opens devices breaks a signing that runs on one of them (a Coldcard's session, a Trezor's reply). So a UDP
emulator that is in use is not even pinged, and USB devices are read from the kernel's listing.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from firmware_bridge.families import VIRTUAL_MODELS, UsbModel, usb_model
from firmware_bridge.model import Endpoint
from firmware_bridge.sighting import Listing, Sighting, webusb_address

# Emulators answer on the same machine, within a millisecond.
_ANSWER_SECONDS: Final = 0.5
_PING: Final = b"PINGPING"
_PONG: Final = b"PONGPONG"
_SYSFS: Final = Path("/sys/bus/usb/devices")
_DEVFS: Final = Path("/dev/bus/usb")
_HID_CLASS: Final = "03"


def endpoint_listing(endpoints: Sequence[Endpoint]) -> Listing:
    """Looks after virtual devices and emulators at fixed addresses."""

    async def look(in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        answers = await asyncio.gather(*(_is_there(endpoint, in_use) for endpoint in endpoints))
        return [_virtual(endpoint) for endpoint, there in zip(endpoints, answers, strict=True) if there]

    return look


def _virtual(endpoint: Endpoint) -> Sighting:
    return Sighting(endpoint, VIRTUAL_MODELS.get(endpoint.family, str(endpoint.family)))


async def _is_there(endpoint: Endpoint, in_use: Collection[Endpoint]) -> bool:
    if endpoint.kind == "unix":
        # Connecting a datagram socket sends nothing: a Coldcard in use does not notice.
        return _unix_listens(endpoint.place)
    if endpoint in in_use:
        return True
    if endpoint.kind == "udp":
        return await _udp_answers(endpoint.place)
    if endpoint.kind == "tcp":
        return await _tcp_listens(endpoint.place)
    return True


def _unix_listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


async def _udp_answers(place: str) -> bool:
    """Trezor's emulators answer PINGPING with PONGPONG."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 - the signature is not ours
        try:
            probe.connect(_host_and_port(place))
            async with asyncio.timeout(_ANSWER_SECONDS):
                await loop.sock_sendall(probe, _PING)
                return await loop.sock_recv(probe, len(_PONG)) == _PONG
        except (OSError, TimeoutError):
            return False


async def _tcp_listens(place: str) -> bool:
    host, port = _host_and_port(place)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            _reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _host_and_port(place: str) -> tuple[str, int]:
    host, _colon, port = place.rpartition(":")
    return host, int(port)


def usb_listing() -> Listing:
    """What the bus shows: from sysfs on Linux, by hidapi's and libusb's listings elsewhere."""
    return sysfs_listing() if sys.platform == "linux" else _hwi_listing


async def _hwi_listing(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
    from firmware_bridge.hwi_client.listing import list_usb

    return await asyncio.to_thread(list_usb)


def sysfs_listing(root: Path = _SYSFS, devfs: Path = _DEVFS) -> Listing:
    """A few small reads per device on the bus, and no device is opened: 0.1 ms each."""

    async def look(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        return _sysfs_sightings(root, devfs)

    return look


def _sysfs_sightings(root: Path, devfs: Path) -> list[Sighting]:
    if not root.is_dir():
        return []
    folders = sorted(path for path in root.iterdir() if ":" not in path.name)
    return [sighting for folder in folders if (sighting := _sysfs_sighting(folder, devfs)) is not None]


def _sysfs_sighting(folder: Path, devfs: Path) -> Sighting | None:
    try:
        vendor, product = (int(_read(folder / name), 16) for name in ("idVendor", "idProduct"))
        model = usb_model(vendor, product)
        if model is None:
            return None
        bus, number = (int(_read(folder / name)) for name in ("busnum", "devnum"))
        address = _usb_address(folder, model, bus)
    except (OSError, ValueError):
        # Not a device (a hub's root, say), or pulled out while we looked.
        return None
    node = devfs / f"{bus:03d}" / f"{number:03d}"
    return Sighting(
        Endpoint(model.family, address),
        model.model,
        permitted=os.access(node, os.R_OK | os.W_OK),
        unsupported=model.reason,
    )


def _usb_address(folder: Path, model: UsbModel, bus: int) -> str:
    """As HWI names the same thing: hidapi's path is the interface's folder, trezorlib's is bus and ports."""
    if model.transport in {"hid", "hid-or-webusb"}:
        for interface in sorted(folder.glob(f"{folder.name}:*")):
            if _read(interface / "bInterfaceClass") == _HID_CLASS:
                return f"hid:{interface.name}"
    if model.transport in {"webusb", "hid-or-webusb"}:
        return webusb_address(bus, folder.name.partition("-")[2].split("."))
    return f"usb:{folder.name}"


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()
