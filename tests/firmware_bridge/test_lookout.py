"""A listing that fails, hangs or is cancelled: the devices stay as they were, and the next look works."""

import asyncio

import pytest

from firmware_bridge import Bridge, Deadlines
from firmware_bridge.model import Endpoint, Sighting
from multisig import Network
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio

NANO = Sighting(Endpoint.parse("ledger:hid:1-2:1.0"), "Nano Z", unsupported="Too new.")
STICK = Sighting(Endpoint.parse("trezor:webusb:001:2"), "Stick", unsupported="Too old.")


class Bus:
    """Lists what the test sets, or calls what the test sets."""

    def __init__(self, *shown):
        self.shown = list(shown)
        self.trouble = None
        self.asked = 0
        self.looked_at = asyncio.Event()

    async def __call__(self, _in_use):
        self.asked += 1
        self.looked_at.set()
        if self.trouble is not None:
            await self.trouble()
        return list(self.shown)


async def out_of_descriptors():
    raise OSError(24, "Too many open files")


def bridge_to(*buses):
    return Bridge(network=Network.REGTEST, listings=buses, deadlines=Deadlines(probe=0.05))


async def models(bridge):
    return [device.model for device in await bridge.refresh()]


async def test_a_listing_that_fails_takes_no_device_away_and_is_told_of_once(caplog):
    broken, sound = Bus(NANO), Bus()
    async with bridge_to(broken, sound) as bridge:
        assert await models(bridge) == ["Nano Z"]
        broken.trouble = out_of_descriptors
        sound.shown = [STICK]
        assert await models(bridge) == ["Nano Z", "Stick"]
        assert await models(bridge) == ["Nano Z", "Stick"]
        assert caplog.text.count("Too many open files") == 1
        broken.trouble, broken.shown = None, []
        assert await models(bridge) == ["Stick"]


async def test_a_listing_that_hangs_delays_no_caller_and_is_not_asked_twice():
    free = asyncio.Event()
    broken, sound = Bus(), Bus(STICK)
    broken.trouble = free.wait
    async with asyncio.timeout(PATIENCE), bridge_to(broken, sound) as bridge:
        assert await models(bridge) == ["Stick"]
        assert await models(bridge) == ["Stick"]
        assert broken.asked == 1
        broken.shown = [NANO]
        free.set()
        assert await models(bridge) == ["Stick", "Nano Z"]
