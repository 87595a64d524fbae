"""What makes the bridge look at once, and what it does where nothing tells."""

import asyncio
import socket

import pytest

from firmware_bridge.presence import hotplug as module
from firmware_bridge.presence.hotplug import Polling, Udev, best_hotplug

pytestmark = pytest.mark.anyio
LONG = 3600


@pytest.fixture
def wire():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.setblocking(False)  # noqa: FBT003 - the signature is not ours
        yield ours, theirs


async def test_a_message_ends_the_wait_and_a_burst_ends_it_once(wire):
    ours, theirs = wire
    udev = Udev(ours, settling=0.01)
    async with asyncio.timeout(5):
        waiting = asyncio.create_task(udev.wait(LONG))
        await asyncio.sleep(0)
        for _ in range(12):
            theirs.send(b"add")
        await waiting
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await udev.wait(LONG)
    udev.close()


async def test_a_message_between_two_waits_is_not_lost(wire):
    ours, theirs = wire
    udev = Udev(ours, settling=0.01)
    theirs.send(b"add")
    async with asyncio.timeout(5):
        await udev.wait(LONG)
    udev.close()


async def test_without_a_message_the_wait_ends_with_its_time(wire):
    udev = Udev(wire[0])
    async with asyncio.timeout(5):
        await udev.wait(0.01)
    assert udev.patience > Polling().patience
    udev.close()


async def test_a_socket_that_was_closed_means_polling():
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)  # noqa: FBT003 - the signature is not ours
        udev = Udev(ours, settling=0.01)
        theirs.close()
        async with asyncio.timeout(5):
            await udev.wait(LONG)
        assert udev.patience == Polling().patience
        # Nobody listens any more: an end that stays readable for ever costs nothing.
        assert asyncio.get_running_loop().remove_reader(ours.fileno()) is False


async def test_without_udev_polling(tmp_path):
    assert isinstance(await best_hotplug(tmp_path / "none"), Polling)


async def test_where_udev_runs_its_socket_is_listened_to(tmp_path):
    pyudev = pytest.importorskip("pyudev")
    control = tmp_path / "control"
    control.touch()
    try:
        pyudev.Context()
    except ImportError:
        pytest.skip("no libudev here")
    found = await best_hotplug(control)
    try:
        assert isinstance(found, Udev)
    finally:
        found.close()


@pytest.mark.parametrize("error", [ImportError("no library named udev"), OSError(97, "no such family")])
async def test_a_udev_that_cannot_be_heard_means_polling(tmp_path, monkeypatch, error):
    def missing(_control):
        raise error

    monkeypatch.setattr(module, "_monitor", missing)
    found = await best_hotplug(tmp_path)
    assert isinstance(found, Polling)
    found.close()
