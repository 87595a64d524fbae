"""USB devices as sysfs lists them, and the udev rules for them; as hidapi, libusb and pyserial list them."""

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest

from firmware_bridge import presence
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.presence.libusb import hid_sighting, list_usb, serial_sighting, webusb_sighting
from firmware_bridge.presence.usb import USB_MODELS, device_nodes

pytestmark = pytest.mark.anyio


def plug(tmp_path, name, vendor, product, interfaces=("03",), *, bus=1, number=7, product_name=None):
    """A device as the kernel shows it; gives its file."""
    folder = tmp_path / "sys" / name
    folder.mkdir(parents=True)
    for key, value in {
        "idVendor": f"{vendor:04x}",
        "idProduct": f"{product:04x}",
        "busnum": str(bus),
        "devnum": str(number),
        **({"product": product_name} if product_name else {}),
    }.items():
        (folder / key).write_text(value + "\n")
    for index, kind in enumerate(interfaces):
        interface = folder / f"{name}:1.{index}"
        interface.mkdir()
        (interface / "bInterfaceClass").write_text(kind + "\n")
    node = tmp_path / "dev" / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"
    node.parent.mkdir(parents=True, exist_ok=True)
    node.touch()
    return node


def listing(tmp_path):
    return presence.sysfs_listing(tmp_path / "sys", tmp_path / "dev")


async def look(tmp_path):
    """The second time: a file that may not be opened counts from then on."""
    looking = listing(tmp_path)
    await looking([])
    return await looking([])


async def test_the_kernels_listing_gives_hwis_own_paths(tmp_path):
    plug(tmp_path, "1-2", 0xD13E, 0xCC10, number=1)
    plug(tmp_path, "1-4.3", 0x1209, 0x53C1, ("ff", "03"), number=2)
    plug(tmp_path, "2-1", 0x534C, 0x0001, ("03",), bus=2, number=3)
    plug(tmp_path, "2-2", 0x534C, 0x0001, ("ff",), bus=2, number=4)
    plug(tmp_path, "3-1", 0x2C97, 0x5011, ("0b", "03"), bus=3, number=5)
    plug(tmp_path, "3-4", 0x03EB, 0x2403, ("03", "03"), bus=3, number=8, product_name="BitBox02 Nova Multi")
    seen = {str(sighting.endpoint): sighting.model for sighting in await look(tmp_path)}
    assert seen == {
        "coldcard:hid:1-2:1.0": "Coldcard",
        "trezor:webusb:001:4:3": "Trezor",
        "trezor:hid:2-1:1.0": "Trezor One",
        "trezor:webusb:002:2": "Trezor One",
        "ledger:hid:3-1:1.1": "Ledger Nano S Plus",
        "bitbox02:hid:3-4:1.0": "BitBox02 Nova",
    }


@pytest.mark.parametrize(
    ("numbers", "below"),
    [((0x303A, 0x4001), "tty/ttyACM3"), ((0x1A86, 0x55D4), "tty/ttyACM3"), ((0x10C4, 0xEA60), "ttyACM3")],
)
async def test_a_jade_is_the_port_that_its_driver_made(tmp_path, numbers, below):
    plug(tmp_path, "1-1", *numbers, ("02",))
    (tmp_path / "dev" / "ttyACM3").touch()
    (tmp_path / "sys" / "1-1" / "1-1:1.0" / below).mkdir(parents=True)
    (sighting,) = await look(tmp_path)
    assert sighting.endpoint == Endpoint(Family.JADE, "serial:/dev/ttyACM3")
    assert sighting.permitted
    (tmp_path / "dev" / "ttyACM3").unlink()
    (sighting,) = await look(tmp_path)
    assert not sighting.permitted


async def test_a_device_whose_interface_is_not_there_yet_is_seen_when_it_is(tmp_path):
    plug(tmp_path, "1-2", 0xD13E, 0xCC10, ())
    looking = listing(tmp_path)
    assert await looking([]) == []
    interface = tmp_path / "sys" / "1-2" / "1-2:1.0"
    interface.mkdir()
    (interface / "bInterfaceClass").write_text("03\n")
    assert len(await looking([])) == 1


async def test_what_is_no_signing_device_is_passed_over_and_read_once(tmp_path):
    root = tmp_path / "sys"
    plug(tmp_path, "1-1", 0x046D, 0xC52B)
    (root / "usb1").mkdir()
    (root / "1-0:1.0").mkdir()
    (root / "1-9").mkdir()
    (root / "1-9" / "idVendor").write_text("no number\n")
    looking = listing(tmp_path)
    assert await looking([]) == []
    # Its numbers do not change while it is plugged in; what is plugged in later at the same place is another
    # entry.
    (root / "1-1" / "idVendor").write_text("d13e\n")
    (root / "1-1" / "idProduct").write_text("cc10\n")
    assert await looking([]) == []
    (root / "1-1").rename(root / "gone")
    plug(tmp_path, "1-1", 0xD13E, 0xCC10)
    shutil.rmtree(root / "gone")
    assert len(await looking([])) == 1


async def test_what_was_plugged_in_again_between_two_looks_is_another_incarnation(tmp_path):
    node = plug(tmp_path, "1-1", 0xD13E, 0xCC10)
    node.with_name("008").touch()
    looking = listing(tmp_path)
    (first,) = await looking([])
    assert await looking([]) == [first]
    (tmp_path / "sys" / "1-1" / "devnum").write_text("8\n")
    (second,) = await looking([])
    assert second.endpoint == first.endpoint
    assert second.incarnation != first.incarnation


async def test_a_device_file_that_is_not_ours_to_open(tmp_path, monkeypatch):
    node = plug(tmp_path, "1-1", 0xD13E, 0xCC10)
    asked = []
    # Tests may run as root, who may open anything.
    monkeypatch.setattr(os, "access", lambda *question: bool(asked.append(question)))
    looking = listing(tmp_path)
    assert await looking([]) == [], "udev may open it a moment later"
    (sighting,) = await looking([])
    assert sighting.permitted is False
    assert asked == [(node, os.R_OK | os.W_OK)] * 2


def test_the_files_under_which_a_device_may_be_open(tmp_path):
    root, devfs = tmp_path / "sys", tmp_path / "dev"
    node = plug(tmp_path, "1-4.3", 0x2C97, 0x5011)
    (root / "1-4.3" / "1-4.3:1.0" / "0003:2C97:5011.0001" / "hidraw" / "hidraw4").mkdir(parents=True)
    raw = devfs / "hidraw4"
    hid = Endpoint(Family.LEDGER, "hid:1-4.3:1.0")
    assert device_nodes(hid, root, devfs) == (node, raw)
    assert device_nodes(Endpoint(Family.TREZOR, "webusb:001:4:3"), root, devfs) == (node, raw)
    assert device_nodes(Endpoint(Family.JADE, "serial:/dev/ttyACM0"), root, devfs) == (devfs / "ttyACM0",)
    assert device_nodes(Endpoint(Family.LEDGER, "hid:1-5:1.0"), root, devfs) == ()


RULES = sorted((Path(__file__).parents[3] / "udev").glob("*.rules"))
_IDS = re.compile(r'idVendor\}=="([0-9a-f]{4})"(?:, ATTRS?\{idProduct\}=="([0-9a-f]{4})")?')


def lines(path):
    return [
        line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]


def opened():
    return {
        (int(vendor, 16), int(product, 16) if product else None)
        for path in RULES
        for line in lines(path)
        for vendor, product in _IDS.findall(line)
    }


@pytest.mark.parametrize(
    "model",
    [model for model in USB_MODELS if model.transport is not None],
    ids=lambda model: f"{model.model}-{model.product:04x}",
)
def test_every_model_that_hwi_can_reach_has_a_rule(model):
    assert (model.vendor, model.product) in opened() or (model.vendor, None) in opened()


def test_nothing_is_opened_that_is_not_listed():
    listed = {(model.vendor, model.product) for model in USB_MODELS}
    vendors = {model.vendor for model in USB_MODELS if not model.product_mask}
    assert all(numbers in listed or (numbers[1] is None and numbers[0] in vendors) for numbers in opened())


def test_every_family_has_a_file():
    vendors = {vendor for vendor, _product in opened()}
    assert {model.family for model in USB_MODELS if model.vendor in vendors} == set(Family)
    assert {MAKERS[family].udev_rules for family in Family} == {path.name for path in RULES}


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_a_rule_names_a_vendor_and_opens_to_the_seat_only(path):
    assert lines(path)
    for line in lines(path):
        assert _IDS.search(line)
        assert 'MODE="0660"' in line
        assert 'TAG+="uaccess"' in line
        assert "0666" not in line


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
