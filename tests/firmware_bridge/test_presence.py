"""Noticing devices without opening any."""

import os
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge import presence
from firmware_bridge.model import Endpoint, Family
from tests.support.rigs import short_folder

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder():
    with short_folder() as name:
        yield Path(name)


@contextmanager
def listening(family, kind, address):
    with socket.socket(family, kind) as server:
        server.bind(address)
        yield server


def plug(root, devfs, name, vendor, product, interfaces=("03",), *, bus=1, number=7):
    """A device as the kernel shows it."""
    folder = root / name
    folder.mkdir(parents=True)
    for key, value in {
        "idVendor": f"{vendor:04x}",
        "idProduct": f"{product:04x}",
        "busnum": str(bus),
        "devnum": str(number),
    }.items():
        (folder / key).write_text(value + "\n")
    for index, kind in enumerate(interfaces):
        interface = folder / f"{name}:1.{index}"
        interface.mkdir()
        (interface / "bInterfaceClass").write_text(kind + "\n")
    node = devfs / f"{bus:03d}" / f"{number:03d}"
    node.parent.mkdir(parents=True, exist_ok=True)
    node.touch()
    return node


async def look(tmp_path):
    return await presence.sysfs_listing(tmp_path / "sys", tmp_path / "dev")([])


async def test_the_kernels_listing_gives_hwis_own_paths(tmp_path):
    root, devfs = tmp_path / "sys", tmp_path / "dev"
    plug(root, devfs, "1-2", 0xD13E, 0xCC10, number=1)
    plug(root, devfs, "1-4.3", 0x1209, 0x53C1, ("ff", "03"), number=2)
    plug(root, devfs, "2-1", 0x534C, 0x0001, ("03",), bus=2, number=3)
    plug(root, devfs, "2-2", 0x534C, 0x0001, ("ff",), bus=2, number=4)
    plug(root, devfs, "3-1", 0x2C97, 0x5011, ("0b", "03"), bus=3, number=5)
    seen = {str(sighting.endpoint): sighting.model for sighting in await look(tmp_path)}
    assert seen == {
        "coldcard:hid:1-2:1.0": "Coldcard",
        "trezor:webusb:001:4:3": "Trezor",
        "trezor:hid:2-1:1.0": "Trezor One",
        "trezor:webusb:002:2": "Trezor One",
        "ledger:hid:3-1:1.1": "Ledger Nano S Plus",
    }


async def test_what_is_no_signing_device_is_passed_over(tmp_path):
    root, devfs = tmp_path / "sys", tmp_path / "dev"
    plug(root, devfs, "1-1", 0x046D, 0xC52B)
    (root / "usb1").mkdir()
    (root / "1-0:1.0").mkdir()
    (root / "1-9").mkdir()
    (root / "1-9" / "idVendor").write_text("no number\n")
    assert await look(tmp_path) == []


async def test_a_model_that_cannot_be_driven_is_listed_with_the_reason(tmp_path):
    plug(tmp_path / "sys", tmp_path / "dev", "1-1", 0x2C97, 0x9000)
    (sighting,) = await look(tmp_path)
    assert sighting.endpoint.family == Family.LEDGER
    assert "HWI" in sighting.unsupported


async def test_a_device_file_that_is_not_ours_to_open(tmp_path, monkeypatch):
    node = plug(tmp_path / "sys", tmp_path / "dev", "1-1", 0xD13E, 0xCC10)
    asked = []
    # Tests may run as root, who may open anything.
    monkeypatch.setattr(os, "access", lambda *question: bool(asked.append(question)))
    (sighting,) = await look(tmp_path)
    assert sighting.permitted is False
    assert asked == [(node, os.R_OK | os.W_OK)]


async def test_no_bus_at_all(tmp_path):
    assert await look(tmp_path) == []


async def test_a_unix_socket_is_there_while_it_is_bound_and_nothing_is_sent(folder):
    path = str(folder / "s")
    endpoint = Endpoint(Family.COLDCARD, f"unix:{path}")
    listing = presence.endpoint_listing([endpoint])
    assert await listing([]) == []
    with listening(socket.AF_UNIX, socket.SOCK_DGRAM, path) as server:
        server.setblocking(False)  # noqa: FBT003 - the signature is not ours
        (sighting,) = await listing([endpoint])
        assert sighting.endpoint == endpoint
        with pytest.raises(BlockingIOError):
            server.recv(1)
    assert await listing([]) == []


async def test_an_emulator_in_use_is_not_pinged():
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as server:
        server.setblocking(False)  # noqa: FBT003 - the signature is not ours
        endpoint = Endpoint(Family.TREZOR, f"udp:127.0.0.1:{server.getsockname()[1]}")
        assert len(await presence.endpoint_listing([endpoint])([endpoint])) == 1
        with pytest.raises(BlockingIOError):
            server.recv(1)


async def test_a_port_that_answers_something_else_is_no_trezor():
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as server:
        endpoint = Endpoint(Family.TREZOR, f"udp:127.0.0.1:{server.getsockname()[1]}")
        assert await presence.endpoint_listing([endpoint])([]) == []
        assert server.recv(64) == b"PINGPING"


async def test_a_closed_udp_port():
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    endpoint = Endpoint(Family.TREZOR, f"udp:127.0.0.1:{port}")
    assert await presence.endpoint_listing([endpoint])([]) == []


async def test_a_tcp_port_is_there_while_it_listens():
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as server:
        endpoint = Endpoint(Family.LEDGER, f"tcp:127.0.0.1:{server.getsockname()[1]}")
        listing = presence.endpoint_listing([endpoint])
        assert await listing([]) == []
        server.listen()
        assert len(await listing([])) == 1


async def test_the_machines_own_bus_can_be_listed():
    assert isinstance(await presence.usb_listing()([]), list)
