"""What the USB bus shows, read from the kernel's listing on Linux: no device is opened, none hears of it."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from firmware_bridge.model import Endpoint
from firmware_bridge.sighting import Listing, Sighting, webusb_address
from firmware_bridge.usb_models import UsbModel, usb_model

SYSFS: Final = Path("/sys/bus/usb/devices")
DEVFS: Final = Path("/dev")
_HID_CLASS: Final = "03"

# (name, inode): the kernel never gives the same number to what is plugged in later
_Entry = tuple[str, int]


def sysfs_listing(root: Path = SYSFS, devfs: Path = DEVFS) -> Listing:
    """One look at the folder, and a few small reads for each signing device; all else on the bus is read once, ever."""
    others: set[_Entry] = set()

    async def look(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        entries = _entries(root)
        others.intersection_update(entries)
        seen = []
        for entry in sorted(set(entries) - others):
            try:
                sighting = _sighting(root / entry[0], entry[1], devfs)
            except (OSError, ValueError):
                # Not a device (a hub's root, say), or pulled out, or not all there yet, while we looked.
                continue
            if sighting is None:
                others.add(entry)
            else:
                seen.append(sighting)
        return seen

    return look


def _entries(root: Path) -> list[_Entry]:
    try:
        with os.scandir(root) as folder:
            # What has a colon is an interface of a device.
            return [(entry.name, entry.inode()) for entry in folder if ":" not in entry.name]
    except OSError:
        return []


def _sighting(folder: Path, inode: int, devfs: Path) -> Sighting | None:
    vendor, product = (int(_read(folder / name), 16) for name in ("idVendor", "idProduct"))
    model = usb_model(vendor, product, _product_name(folder))
    if model is None:
        return None
    bus, number = (int(_read(folder / name)) for name in ("busnum", "devnum"))
    address = _address(folder, model, bus)
    endpoint = Endpoint(model.family, address)
    node = devfs / Path(endpoint.place).name if endpoint.kind == "serial" else _usb_node(devfs, bus, number)
    return Sighting(
        endpoint,
        model.model,
        permitted=os.access(node, os.R_OK | os.W_OK),
        unsupported=model.reason,
        # The same port may have another device by now, or the same one that has started again.
        incarnation=f"{inode}/{number}",
    )


def _address(folder: Path, model: UsbModel, bus: int) -> str:
    """As HWI names the same thing: hidapi's path is the interface's folder, trezorlib's is bus and ports, Jade's is a port."""
    interfaces = sorted(folder.glob(f"{folder.name}:*"))
    if model.transport in {"hid", "hid-or-webusb"}:
        for interface in interfaces:
            if _read(interface / "bInterfaceClass") == _HID_CLASS:
                return f"hid:{interface.name}"
    if model.transport in {"webusb", "hid-or-webusb"}:
        return webusb_address(bus, folder.name.partition("-")[2].split("."))
    if model.transport == "serial":
        for interface in interfaces:
            # A serial driver names its port in a folder (cdc_acm) or directly (usb-serial).
            for port in (*interface.glob("tty/tty*"), *interface.glob("tty[A-Z]*")):
                return f"serial:/dev/{port.name}"
    if model.reason is None:
        raise ValueError(f"{folder.name} has no interface yet that HWI could drive")
    return f"usb:{folder.name}"


def device_nodes(endpoint: Endpoint, root: Path = SYSFS, devfs: Path = DEVFS) -> tuple[Path, ...]:
    """The device files under which any program may have it open; none if it is not there."""
    if endpoint.kind == "serial":
        return (devfs / Path(endpoint.place).name,)
    folder = root / _port(endpoint)
    try:
        bus, number = (int(_read(folder / name)) for name in ("busnum", "devnum"))
    except (OSError, ValueError):
        return ()
    raw = (devfs / path.name for path in folder.glob("*:*/*/hidraw/hidraw*"))
    return (_usb_node(devfs, bus, number), *raw)


def _port(endpoint: Endpoint) -> str:
    """The folder's name: bus and ports."""
    if endpoint.kind == "webusb":
        bus, *ports = endpoint.place.split(":")
        return f"{bus.lstrip('0')}-{'.'.join(ports)}"
    return endpoint.place.partition(":")[0]


def _usb_node(devfs: Path, bus: int, number: int) -> Path:
    return devfs / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"


def _product_name(folder: Path) -> str | None:
    """What the device called itself when it was plugged in; the kernel keeps it."""
    try:
        return (folder / "product").read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()
