"""The bus as hidapi lists it."""

from types import SimpleNamespace

from firmware_bridge.hwi_client.libusb import LOADED
from firmware_bridge.hwi_client.listing import hid_sightings, list_usb, serial_sightings


def entry(vendor, product, path, interface=0, usage_page=0):
    return {
        "vendor_id": vendor,
        "product_id": product,
        "path": path,
        "interface_number": interface,
        "usage_page": usage_page,
    }


def test_signing_devices_are_seen_once_and_others_not():
    seen = hid_sightings(
        [
            entry(0xD13E, 0xCC10, b"DevSrvsID:1"),
            entry(0x2C97, 0x5011, b"ledger-0"),
            entry(0x2C97, 0x5011, b"ledger-1", interface=1),
            entry(0x2C97, 0x4011, b"by-page", interface=1, usage_page=0xFFA0),
            entry(0x1209, 0x53C1, b"webusb-has-it", interface=0),
            entry(0x046D, 0xC52B, b"mouse"),
        ]
    )
    assert [str(sighting.endpoint) for sighting in seen] == [
        "coldcard:hid:DevSrvsID:1",
        "ledger:hid:ledger-0",
        "ledger:hid:by-page",
    ]


def test_a_jade_is_its_serial_port():
    seen = serial_sightings(
        [
            SimpleNamespace(device="COM3", vid=0x303A, pid=0x4001, product="Jade"),
            SimpleNamespace(device="COM1", vid=None, pid=None, product=None),
            SimpleNamespace(device="COM4", vid=0x0403, pid=0x6001, product="FT232R"),
            # A Coldcard has a serial port as well, which is not how HWI reaches it.
            SimpleNamespace(device="COM5", vid=0xD13E, pid=0xCC10, product="Coldcard"),
        ]
    )
    assert [str(sighting.endpoint) for sighting in seen] == ["jade:serial:COM3"]


def test_the_bundled_libusb_is_used_and_this_bus_can_be_listed():
    assert LOADED
    assert isinstance(list_usb(), list)
