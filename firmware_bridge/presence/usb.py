"""USB devices: which are connected, read from sysfs on Linux without opening a device."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from firmware_bridge.makers import MAKERS
from firmware_bridge.makers.maker import UsbModel
from firmware_bridge.model import Endpoint, Listing, Sighting, webusb_address

# Sources: the vendors' udev rules, hwilib/devices, and the firmware's descriptors. Vendor numbers of chip
# makers (1209, 03eb, 10c4, 1a86, 303a) are listed with their product only.
USB_MODELS: Final[tuple[UsbModel, ...]] = tuple(model for maker in MAKERS.values() for model in maker.usb)


def usb_model(vendor: int, product: int, name: str | None = None) -> UsbModel | None:
    """The model with these numbers and this name; None if it is not a signing device."""
    return next((model for model in USB_MODELS if model.matches(vendor, product, name)), None)


def usb_transports(vendor: int, product: int) -> frozenset[str]:
    """How HWI may reach a device with these numbers, whatever its name; empty if it cannot."""
    lines = (model for model in USB_MODELS if vendor == model.vendor)
    return frozenset(
        model.transport
        for model in lines
        if model.transport and product & model.product_mask == model.product
    )


SYSFS: Final = Path("/sys/bus/usb/devices")
DEVFS: Final = Path("/dev")
_HID_CLASS: Final = "03"

# (name, inode): a device that is plugged in later gets another inode
_Entry = tuple[str, int]


def sysfs_listing(root: Path = SYSFS, devfs: Path = DEVFS) -> Listing:
    """A listing of the bus. Each look reads the folder and a few small files per signing device; any other
    device is read once.
    """
    others: set[_Entry] = set()
    closed: set[_Entry] = set()

    async def look(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        entries = _entries(root)
        others.intersection_update(entries)
        closed.intersection_update(entries)
        seen = []
        for entry in sorted(set(entries) - others):
            try:
                sighting = _sighting(root / entry[0], entry[1], devfs)
            except (OSError, ValueError):
                # Not a device (such as a root hub), just removed, or not set up completely yet.
                continue
            if sighting is None:
                others.add(entry)
            elif sighting.permitted or entry in closed:
                seen.append(sighting)
            else:
                # udev opens the file a moment after the kernel lists the device: the next look counts.
                closed.add(entry)
        return seen

    return look


def _entries(root: Path) -> list[_Entry]:
    try:
        with os.scandir(root) as folder:
            # A name with a colon is an interface of a device.
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
        # Changes when another device is in the same port, or the same one has restarted.
        incarnation=f"{inode}/{number}",
    )


def _address(folder: Path, model: UsbModel, bus: int) -> str:
    """The address as HWI has it: hidapi's path is the interface's folder, trezorlib's is bus and ports,
    Jade's a serial port.
    """
    interfaces = sorted(folder.glob(f"{folder.name}:*"))
    if model.transport in {"hid", "hid-or-webusb"}:
        for interface in interfaces:
            if _read(interface / "bInterfaceClass") == _HID_CLASS:
                return f"hid:{interface.name}"
    if model.transport in {"webusb", "hid-or-webusb"}:
        return webusb_address(bus, folder.name.partition("-")[2].split("."))
    if model.transport == "serial":
        for interface in interfaces:
            # A serial driver has its port in a folder (cdc_acm) or directly (usb-serial).
            for port in (*interface.glob("tty/tty*"), *interface.glob("tty[A-Z]*")):
                return f"serial:/dev/{port.name}"
    if model.reason is None:
        raise ValueError(f"{folder.name} has no interface yet that HWI could drive")
    return f"usb:{folder.name}"


def device_nodes(endpoint: Endpoint, root: Path = SYSFS, devfs: Path = DEVFS) -> tuple[Path, ...]:
    """The device files by which a program may have it open; none if it is not connected."""
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
    """The name of its folder in sysfs: bus and ports."""
    if endpoint.kind == "webusb":
        bus, *ports = endpoint.place.split(":")
        return f"{bus.lstrip('0')}-{'.'.join(ports)}"
    return endpoint.place.partition(":")[0]


def _usb_node(devfs: Path, bus: int, number: int) -> Path:
    return devfs / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"


def _product_name(folder: Path) -> str | None:
    """The product name that the kernel read when the device was plugged in."""
    try:
        return (folder / "product").read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()
