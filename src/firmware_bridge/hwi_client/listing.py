"""The bus as hidapi, libusb and pyserial list it, where there is no sysfs. Descriptors only: nothing is opened."""

from collections.abc import Iterable, Mapping
from typing import Any

import hid
import usb1
from serial.tools import list_ports

from firmware_bridge.families import usb_model
from firmware_bridge.model import Endpoint
from firmware_bridge.sighting import Sighting, webusb_address

# The first interface of a device, or the vendor's page where interfaces are not numbered (HWI looks for the same).
_FIRST_INTERFACE = 0
_LEDGER_USAGE_PAGE = 0xFFA0


def list_usb() -> list[Sighting]:
    """Signing devices on the bus. Blocks for some milliseconds."""
    return [
        *hid_sightings(hid.enumerate()),
        *_webusb_sightings(),
        *serial_sightings(list_ports.comports()),
    ]


def hid_sightings(entries: Iterable[Mapping[str, Any]]) -> list[Sighting]:
    """From what `hid.enumerate` returns."""
    return [sighting for entry in entries if (sighting := _hid_sighting(entry)) is not None]


def _hid_sighting(entry: Mapping[str, Any]) -> Sighting | None:
    model = usb_model(entry["vendor_id"], entry["product_id"], entry.get("product_string"))
    first = entry["interface_number"] in {-1, _FIRST_INTERFACE} or entry["usage_page"] == _LEDGER_USAGE_PAGE
    if model is None or not first or model.transport in {"webusb", "serial"}:
        return None
    path = entry["path"].decode(errors="replace")
    return Sighting(Endpoint(model.family, f"hid:{path}"), model.model, unsupported=model.reason)


def serial_sightings(ports: Iterable[Any]) -> list[Sighting]:
    """From what `serial.tools.list_ports.comports` returns."""
    return [sighting for port in ports if (sighting := _serial_sighting(port)) is not None]


def _serial_sighting(port: Any) -> Sighting | None:
    """A port that is not on the USB bus has no numbers."""
    if port.vid is None or port.pid is None:
        return None
    model = usb_model(port.vid, port.pid, port.product)
    if model is None or model.transport != "serial":
        return None
    return Sighting(Endpoint(model.family, f"serial:{port.device}"), model.model, unsupported=model.reason)


def _webusb_sightings() -> list[Sighting]:
    with usb1.USBContext() as context:
        devices = list(context.getDeviceIterator(skip_on_error=True))
        return [sighting for device in devices if (sighting := _webusb_sighting(device)) is not None]


def _webusb_sighting(device: Any) -> Sighting | None:
    model = usb_model(device.getVendorID(), device.getProductID())
    if model is None or model.transport != "webusb":
        return None
    address = webusb_address(device.getBusNumber(), device.getPortNumberList())
    return Sighting(Endpoint(model.family, address), model.model, unsupported=model.reason)
