"""What the bus may show, as data: whose device it is by its numbers, how HWI reaches it, and why nobody can drive it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from firmware_bridge.model import Family


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
