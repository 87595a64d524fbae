"""USB devices as hidapi, libusb and pyserial list them."""

from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

from firmware_bridge.presence.libusb import hid_sighting, list_usb, serial_sighting, webusb_sighting


def seen_by(look, items):
    return [sighting for sighting in map(look, items) if sighting is not None]


def entry(vendor, product, path, interface=0, usage_page=0):
    return {
        "vendor_id": vendor,
        "product_id": product,
        "path": path,
        "interface_number": interface,
        "usage_page": usage_page,
    }


def test_signing_devices_are_seen_once_and_others_not():
    seen = seen_by(
        hid_sighting,
        [
            entry(0xD13E, 0xCC10, b"DevSrvsID:1"),
            entry(0x2C97, 0x5011, b"ledger-0"),
            entry(0x2C97, 0x5011, b"ledger-1", interface=1),
            entry(0x2C97, 0x4011, b"by-page", interface=1, usage_page=0xFFA0),
            entry(0x1209, 0x53C1, b"webusb-has-it", interface=0),
            entry(0x046D, 0xC52B, b"mouse"),
        ],
    )
    assert [str(sighting.endpoint) for sighting in seen] == [
        "coldcard:hid:DevSrvsID:1",
        "ledger:hid:ledger-0",
        "ledger:hid:by-page",
    ]


def test_a_jade_is_its_serial_port():
    seen = seen_by(
        serial_sighting,
        [
            SimpleNamespace(device="COM3", vid=0x303A, pid=0x4001, product="Jade"),
            SimpleNamespace(device="COM1", vid=None, pid=None, product=None),
            SimpleNamespace(device="COM4", vid=0x0403, pid=0x6001, product="FT232R"),
            # A Coldcard has a serial port as well, which is not how HWI reaches it.
            SimpleNamespace(device="COM5", vid=0xD13E, pid=0xCC10, product="Coldcard"),
        ],
    )
    assert [str(sighting.endpoint) for sighting in seen] == ["jade:serial:COM3"]


def test_a_trezors_second_factor_is_not_its_wallet():
    assert seen_by(hid_sighting, [entry(0x534C, 0x0001, b"u2f", interface=-1, usage_page=0xF1D0)]) == []


def usb_device(vendor, product, interface_class=0xFF, ports=(2, 1)):
    """With one setting of one interface of one configuration. What would open it is not there."""
    answers = {"getVendorID": vendor, "getProductID": product, "getBusNumber": 1, "getPortNumberList": ports}
    device = MagicMock(spec=[*answers, "__getitem__"])
    device.configure_mock(**{f"{name}.return_value": answer for name, answer in answers.items()})
    device.__getitem__.return_value = [[Mock(**{"getClass.return_value": interface_class})]]
    return device


def test_what_is_reached_by_webusb_and_what_is_not_reached():
    seen = seen_by(
        webusb_sighting,
        [
            usb_device(0x1209, 0x53C1, ports=(1,)),
            usb_device(0x1209, 0x53C0, ports=(2,)),
            usb_device(0x534C, 0x0001, ports=(3,)),
            usb_device(0x534C, 0x0001, interface_class=0x03, ports=(4,)),
            usb_device(0x2C97, 0x5011, ports=(5,)),
            usb_device(0x2C97, 0x9011, ports=(6,)),
            usb_device(0x03EB, 0x2403, ports=(7,)),
            usb_device(0x046D, 0xC52B, ports=(8,)),
        ],
    )
    assert {str(sighting.endpoint): bool(sighting.unsupported) for sighting in seen} == {
        "trezor:webusb:001:1": False,
        "trezor:usb:001:2": True,
        "trezor:webusb:001:3": False,
        "ledger:usb:001:6": True,
    }


def test_this_bus_can_be_listed():
    assert isinstance(list_usb(), list)
