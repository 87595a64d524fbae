"""USB devices: the known models as data, and what is connected, read from sysfs on Linux without opening a
device.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firmware_bridge.model import Endpoint, Family, Listing, Sighting, webusb_address


@dataclass(frozen=True)
class UsbModel:
    """A model by its USB numbers. `product_mask` selects the bits of the product id that name the model.

    `names`: product names, where the numbers alone do not tell; empty means any. `transport` is how HWI
    reaches it, or None; `reason` says why it cannot be driven.
    """

    vendor: int
    product: int
    family: Family
    model: str
    transport: str | None = "hid"
    product_mask: int = 0xFFFF
    names: tuple[str, ...] = ()
    reason: str | None = None

    def matches(self, vendor: int, product: int, name: str | None = None) -> bool:
        if vendor != self.vendor or product & self.product_mask != self.product:
            return False
        return not self.names or name in self.names


_BOOTLOADER: Final = "The device is in its bootloader: connect it again without pressing a button."
_UNKNOWN: Final = "HWI does not know this model."
_THP: Final = "HWI cannot speak the protocol of this model (THP)."
_TOO_OLD: Final = "HWI no longer supports this model."

_TREZOR: Final = (0x1209, 0x53C1)
_BITBOX: Final = (0x03EB, 0x2403)

# The first match wins. Sources: the vendors' udev rules, hwilib/devices, and the firmware's descriptors.
# Vendor numbers of chip makers (1209, 03eb, 10c4, 1a86, 303a) are listed with their product only. HWI also
# takes 0403:6001, 1a86:7523 and 303a:1001 for a Jade; these are home-made boards and many other things.
USB_MODELS: Final[tuple[UsbModel, ...]] = (
    UsbModel(0x1209, 0x53C0, Family.TREZOR, "Trezor", None, reason=_BOOTLOADER),
    UsbModel(*_TREZOR, Family.TREZOR, "Trezor Safe 7", None, names=("Trezor Safe 7",), reason=_THP),
    UsbModel(*_TREZOR, Family.TREZOR, "Trezor Safe 5", "webusb", names=("Trezor Safe 5",)),
    UsbModel(*_TREZOR, Family.TREZOR, "Trezor Safe 3", "webusb", names=("Trezor Safe 3",)),
    UsbModel(*_TREZOR, Family.TREZOR, "Trezor", "webusb"),
    UsbModel(0x534C, 0x0001, Family.TREZOR, "Trezor One", "hid-or-webusb"),
    UsbModel(0x534C, 0, Family.TREZOR, "Trezor", None, product_mask=0, reason=_UNKNOWN),
    UsbModel(0xD13E, 0xCC10, Family.COLDCARD, "Coldcard"),
    UsbModel(0xD13E, 0, Family.COLDCARD, "Coldcard", None, product_mask=0, reason=_UNKNOWN),
    UsbModel(0x2C97, 0x1000, Family.LEDGER, "Ledger Nano S", product_mask=0xFF00),
    UsbModel(0x2C97, 0x4000, Family.LEDGER, "Ledger Nano X", product_mask=0xFF00),
    UsbModel(0x2C97, 0x5000, Family.LEDGER, "Ledger Nano S Plus", product_mask=0xFF00),
    UsbModel(0x2C97, 0x6000, Family.LEDGER, "Ledger Stax", product_mask=0xFF00),
    UsbModel(0x2C97, 0x7000, Family.LEDGER, "Ledger Flex", product_mask=0xFF00),
    UsbModel(0x2C97, 0x8000, Family.LEDGER, "Ledger Nano Gen5", None, product_mask=0xFF00, reason=_UNKNOWN),
    UsbModel(0x2C97, 0x0001, Family.LEDGER, "Ledger Nano S"),
    UsbModel(0x2C97, 0x0004, Family.LEDGER, "Ledger Nano X"),
    # Later models have such a number in their bootloader only.
    UsbModel(0x2C97, 0x0005, Family.LEDGER, "Ledger Nano S Plus", None, reason=_BOOTLOADER),
    UsbModel(0x2C97, 0x0006, Family.LEDGER, "Ledger Stax", None, reason=_BOOTLOADER),
    UsbModel(0x2C97, 0x0007, Family.LEDGER, "Ledger Flex", None, reason=_BOOTLOADER),
    UsbModel(0x2C97, 0x0008, Family.LEDGER, "Ledger Nano Gen5", None, reason=_BOOTLOADER),
    UsbModel(0x2C97, 0x0000, Family.LEDGER, "Ledger Blue", None, product_mask=0xFF00, reason=_TOO_OLD),
    UsbModel(0x2C97, 0, Family.LEDGER, "Ledger", None, product_mask=0, reason=_UNKNOWN),
    UsbModel(0x2581, 0x1B7C, Family.LEDGER, "Ledger HW.1", None, reason=_TOO_OLD),
    UsbModel(0x2581, 0x2B7C, Family.LEDGER, "Ledger HW.1", None, reason=_TOO_OLD),
    UsbModel(0x2581, 0x3B7C, Family.LEDGER, "Ledger HW.1", None, reason=_TOO_OLD),
    UsbModel(0x2581, 0x4B7C, Family.LEDGER, "Ledger HW.1", None, reason=_TOO_OLD),
    UsbModel(*_BITBOX, Family.BITBOX02, "BitBox02", names=("BitBox02", "BitBox02BTC")),
    UsbModel(
        *_BITBOX,
        Family.BITBOX02,
        "BitBox02 Nova",
        names=("BitBox02 Nova Multi", "BitBox02 Nova BTC-only"),
    ),
    # HWI looks for the names above only; the bootloader has the same numbers and another name.
    UsbModel(
        *_BITBOX,
        Family.BITBOX02,
        "BitBox02",
        None,
        names=(
            "bb02-bootloader",
            "bb02btc-bootloader",
            "BitBox02 Nova Multi bl",
            "BitBox02 Nova BTC-only bl",
        ),
        reason=_BOOTLOADER,
    ),
    UsbModel(*_BITBOX, Family.BITBOX02, "BitBox02", None, reason=_UNKNOWN),
    UsbModel(0x10C4, 0xEA60, Family.JADE, "Jade", "serial"),
    UsbModel(0x1A86, 0x55D4, Family.JADE, "Jade", "serial"),
    # Jade Plus, and the Jade with Espressif's own USB.
    UsbModel(0x303A, 0x4001, Family.JADE, "Jade", "serial"),
)


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

    async def look(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        entries = _entries(root)
        others.intersection_update(entries)
        seen = []
        for entry in sorted(set(entries) - others):
            try:
                sighting = _sighting(root / entry[0], entry[1], devfs)
            except (OSError, ValueError):
                # Not a device (such as a root hub), just removed, or not set up completely yet.
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
