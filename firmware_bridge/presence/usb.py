"""What the bus may show, as data: whose device it is by its numbers, how HWI reaches it, and why nobody can drive it."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firmware_bridge.model import Endpoint, Family, Listing, Sighting, webusb_address

# FOLDED from firmware_bridge/presence/sysfs.py: What the USB bus shows, read from the kernel's listing on Linux: no device is opened, none hears of it.


@dataclass(frozen=True)
class UsbModel:
    """One line of what the bus may show. `product_mask` picks the bits of the product id that name the model.

    `names`: what the device may call itself, where the numbers alone do not tell; empty: whatever it calls itself.
    `transport` is how HWI reaches it, None where it has no way to; `reason` says why nobody here can drive it.
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
_TOO_OLD: Final = "HWI drives this model no longer."

_TREZOR: Final = (0x1209, 0x53C1)
_BITBOX: Final = (0x03EB, 0x2403)

# First match wins. Numbers and names: the vendors' udev rules, hwilib/devices, and the firmware's own descriptors. A number
# that belongs to a maker of chips (1209, 03eb, 10c4, 1a86, 303a) is listed with its product only; 0403:6001, 1a86:7523 and
# 303a:1001, which HWI takes for a Jade as well, are home-made boards and a thousand other things.
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
    # Later models have a number of this form in their bootloader only.
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
    UsbModel(0x2B24, 0x0001, Family.KEEPKEY, "KeepKey", "hid"),
    UsbModel(0x2B24, 0x0002, Family.KEEPKEY, "KeepKey", "webusb"),
    UsbModel(0x2B24, 0, Family.KEEPKEY, "KeepKey", None, product_mask=0, reason=_UNKNOWN),
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
    UsbModel(0x03EB, 0x2402, Family.DIGITALBITBOX, "Digital Bitbox"),
    UsbModel(0x10C4, 0xEA60, Family.JADE, "Jade", "serial"),
    UsbModel(0x1A86, 0x55D4, Family.JADE, "Jade", "serial"),
    # Jade Plus, and the Jade with Espressif's own USB.
    UsbModel(0x303A, 0x4001, Family.JADE, "Jade", "serial"),
)


def usb_model(vendor: int, product: int, name: str | None = None) -> UsbModel | None:
    """The signing device with these numbers and this name, or None for everything else on the bus."""
    return next((model for model in USB_MODELS if model.matches(vendor, product, name)), None)


def usb_transports(vendor: int, product: int) -> frozenset[str]:
    """How HWI may reach what has these numbers, whatever it calls itself; empty: nobody can reach it."""
    lines = (model for model in USB_MODELS if vendor == model.vendor)
    return frozenset(
        model.transport
        for model in lines
        if model.transport and product & model.product_mask == model.product
    )


# The file of the folder `udev` that opens a make's devices to the person at the machine.
UDEV_RULES: Final[Mapping[Family, str]] = {
    Family.TREZOR: "20-trezor.rules",
    Family.COLDCARD: "20-coldcard.rules",
    Family.LEDGER: "20-ledger.rules",
    Family.KEEPKEY: "20-keepkey.rules",
    Family.BITBOX02: "20-bitbox.rules",
    Family.JADE: "20-jade.rules",
    Family.DIGITALBITBOX: "20-bitbox.rules",
}


EMULATORS: Final[Mapping[Family, str]] = {
    Family.TREZOR: "Trezor (emulator)",
    Family.COLDCARD: "Coldcard (emulator)",
    Family.LEDGER: "Ledger (emulator)",
    Family.KEEPKEY: "KeepKey (emulator)",
    Family.BITBOX02: "BitBox02 (emulator)",
    Family.JADE: "Jade (emulator)",
    Family.DIGITALBITBOX: "Digital Bitbox (emulator)",
}


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
