"""Newer models: PIN and passphrase on the device's own screen, and what they keep to themselves while
locked.
"""

from contextlib import asynccontextmanager

import pytest

from device_simulators.panel import Panel, approve_all, ask_person
from device_simulators.trezor import VirtualTrezor
from device_simulators.trezor import messages as m
from device_simulators.trezor.models import MODELS
from tests.support.trezor_host import MASTER, host_of
from tests.support.virtual import NETWORK, seed

pytestmark = pytest.mark.anyio

KEY = m.GetPublicKey(address_n=MASTER, coin_name="Testnet")
ASKS_ON_DEVICE = [model.name for model in MODELS if model.on_device]


@asynccontextmanager
async def newer(script=approve_all, *, model="T", **options):
    device = VirtualTrezor(seed(), Panel(script), NETWORK, model=model, **options)
    endpoint = await device.start()
    try:
        async with host_of(endpoint) as host:
            yield device, host
    finally:
        await device.stop()


@pytest.mark.parametrize("model", ASKS_ON_DEVICE)
async def test_a_locked_one_asks_on_its_screen_and_the_host_waits(model):
    async with newer(ask_person, model=model, pin="12") as (device, host):
        await host.initialize()
        assert (await host.call(KEY, m.ButtonRequest)).code == m.ButtonCode.PIN_ENTRY
        assert device.panel.pending[1].kind == "enter-pin"
        host.send(m.ButtonAck())
        device.panel.press_yes()
        assert isinstance(await host.receive(), m.PublicKey)
        assert (await host.call(m.GetFeatures(), m.Features)).unlocked


async def test_what_is_told_while_it_is_locked():
    async with newer(pin="12", passphrase_protection=True, always_on_device=True) as (device, host):
        locked = await host.call(m.GetFeatures(), m.Features)
        assert (locked.unlocked, locked.passphrase_protection, locked.passphrase_always_on_device) == (
            False,
            None,
            None,
        )
        device.unlock()
        told = await host.call(m.GetFeatures(), m.Features)
        assert (told.passphrase_protection, told.passphrase_always_on_device) == (True, True)
        assert (told.model, told.capabilities) == ("T", (1, 17))


async def test_even_a_ping_waits_for_the_pin():
    async with newer(ask_person, pin="12") as (_device, host):
        asked = await host.call(m.Ping(message="x"), m.ButtonRequest)
        assert asked.code == m.ButtonCode.PIN_ENTRY
