"""Hotplug events of udev, and polling without them."""

import asyncio
import os
import socket
import struct
import sys

import pytest

from firmware_bridge.presence import hotplug as module
from firmware_bridge.presence.hotplug import Hotplug, Udev, best_hotplug
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio
LONG = 3600
ADDED = b"ACTION=add\0SUBSYSTEM=usb\0"


@pytest.fixture
def wire():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.setblocking(False)  # noqa: FBT003 - the signature is not ours
        yield ours, theirs


async def test_a_message_ends_the_wait_and_a_burst_ends_it_once(wire):
    ours, theirs = wire
    udev = Udev(ours, settling=0.01)
    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.create_task(udev.wait(LONG))
        await asyncio.sleep(0)
        for _ in range(12):
            theirs.send(ADDED)
        await waiting
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await udev.wait(LONG)
    udev.close()


async def test_a_message_between_two_waits_is_not_lost(wire):
    ours, theirs = wire
    udev = Udev(ours, settling=0.01)
    theirs.send(ADDED)
    async with asyncio.timeout(PATIENCE):
        await udev.wait(LONG)
    udev.close()


async def test_without_a_message_the_wait_ends_with_its_time(wire):
    udev = Udev(wire[0])
    async with asyncio.timeout(PATIENCE):
        await udev.wait(0.01)
    assert udev.patience > Hotplug().patience
    udev.close()


async def test_a_socket_that_was_closed_means_polling():
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)  # noqa: FBT003 - the signature is not ours
        udev = Udev(ours, settling=0.01)
        theirs.close()
        async with asyncio.timeout(PATIENCE):
            await udev.wait(LONG)
        assert udev.patience == Hotplug().patience
        # No reader is left: an end that stays readable for ever costs nothing.
        assert ours.fileno() < 0


async def test_without_udev_polling(tmp_path):
    assert type(best_hotplug(tmp_path / "none")) is Hotplug


def udev_message(subsystem):
    """As udevd tells of a device: struct udev_monitor_netlink_header, then properties."""
    properties = b"ACTION=add\0SUBSYSTEM=" + subsystem + b"\0"
    header = struct.pack("=8sIIII", b"libudev\0", socket.htonl(0xFEEDCAFE), 40, 40, len(properties))
    return header + bytes(16) + properties


@pytest.mark.skipif(sys.platform != "linux", reason="udev is Linux's")
async def test_what_udev_tells_of_usb_ends_the_wait_and_of_disks_does_not(tmp_path):
    control = tmp_path / "control"
    control.touch()
    found = best_hotplug(control)
    assert isinstance(found, Udev)
    uevents = 15  # NETLINK_KOBJECT_UEVENT
    with (
        socket.socket(fileno=os.dup(found._messages.fileno())) as ours,
        socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, uevents) as udevd,
    ):
        # To our socket alone: no other program on this machine gets it.
        address = (ours.getsockname()[0], 0)
        try:
            udevd.sendto(udev_message(b"block"), address)
        except PermissionError:
            found.close()
            pytest.skip("only root speaks as udevd does")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await found.wait(LONG)
        for subsystem in (b"usb", b"hidraw", b"tty"):
            udevd.sendto(udev_message(subsystem), address)
            async with asyncio.timeout(PATIENCE):
                await found.wait(LONG)
    found.close()


async def test_a_udev_that_cannot_be_heard_means_polling(tmp_path, monkeypatch):
    def missing(*_arguments):
        raise OSError(97, "no such family")

    monkeypatch.setattr(module.socket, "socket", missing)
    found = best_hotplug(tmp_path)
    assert type(found) is Hotplug
    found.close()
