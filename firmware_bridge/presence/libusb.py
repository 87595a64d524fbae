"""USB devices as hidapi, libusb and pyserial list them, for systems without sysfs. Only descriptors are read:
no device is opened. Importing this module loads the libusb of the libusb-package wheel, without which HWI
drives no WebUSB device.
"""

import ctypes
from collections.abc import Mapping
from typing import Any

import hid
import libusb_package
import usb1
from serial.tools import list_ports

from firmware_bridge.model import Endpoint, Sighting, webusb_address
from firmware_bridge.presence.usb import usb_model, usb_transports

# The first interface of a device, or the vendor's usage page where interfaces are not numbered (as in HWI).
_FIRST_INTERFACE = 0
_LEDGER_USAGE_PAGE = 0xFFA0
# The FIDO interface that some devices have as well; its interface number may not tell it apart.
_FIDO_USAGE_PAGE = 0xF1D0
_HID = frozenset({"hid", "hid-or-webusb"})
_VENDOR_CLASS = 0xFF


# Without it usb1 looks for the system's.
if (_library := libusb_package.get_library_path()) is not None:
    usb1.loadLibrary(ctypes.CDLL(str(_library)))


def list_usb() -> list[Sighting]:
    """Signing devices on the bus. Blocks for some milliseconds."""
    with usb1.USBContext() as context:
        devices = list(context.getDeviceIterator(skip_on_error=True))
        seen = (
            *map(hid_sighting, hid.enumerate()),
            *map(webusb_sighting, devices),
            *map(serial_sighting, list_ports.comports()),
        )
    return [sighting for sighting in seen if sighting is not None]


def hid_sighting(entry: Mapping[str, Any]) -> Sighting | None:
    """From an entry of `hid.enumerate`."""
    numbers = entry["vendor_id"], entry["product_id"]
    model = usb_model(*numbers, entry.get("product_string"))
    if model is None or not usb_transports(*numbers) & _HID or not _is_first(entry):
        return None
    path = entry["path"].decode(errors="replace")
    return Sighting(Endpoint(model.family, f"hid:{path}"), model.model, unsupported=model.reason)


def _is_first(entry: Mapping[str, Any]) -> bool:
    page = entry["usage_page"]
    numbered_first = entry["interface_number"] in {-1, _FIRST_INTERFACE} and page != _FIDO_USAGE_PAGE
    return bool(numbered_first or page == _LEDGER_USAGE_PAGE)


def serial_sighting(port: Any) -> Sighting | None:
    """From a port of `serial.tools.list_ports.comports`. One that is not on the USB bus has no numbers."""
    if port.vid is None or port.pid is None:
        return None
    model = usb_model(port.vid, port.pid, port.product)
    if model is None or model.transport != "serial":
        return None
    return Sighting(Endpoint(model.family, f"serial:{port.device}"), model.model, unsupported=model.reason)


def webusb_sighting(device: Any) -> Sighting | None:
    """From a device in libusb's list, where it is reached by WebUSB, or cannot be driven. The product name is
    not read: that would open the device.
    """
    numbers = device.getVendorID(), device.getProductID()
    model, transports = usb_model(*numbers), usb_transports(*numbers)
    if model is None or (
        transports and "webusb" not in transports and not _speaks_webusb(device, transports)
    ):
        return None
    ports = device.getPortNumberList()
    address = webusb_address(device.getBusNumber(), ports)
    if not transports:
        address = f"usb:{address.partition(':')[2]}"
    return Sighting(Endpoint(model.family, address), model.model, unsupported=model.reason)


def _speaks_webusb(device: Any, transports: frozenset[str]) -> bool:
    """A Trezor One's firmware decides: HID at first, WebUSB since 1.7. The first interface's descriptor tells
    which.
    """
    if "hid-or-webusb" not in transports:
        return False
    try:
        return bool(device[0][_FIRST_INTERFACE][0].getClass() == _VENDOR_CLASS)
    except (IndexError, usb1.USBError):
        return False
