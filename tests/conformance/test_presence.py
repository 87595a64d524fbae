"""Devices that come and go, what is told of it, and what every device tells without asking the person: who it
is, and its keys.
"""

import asyncio

import pytest

from firmware_bridge import DeviceState, Disconnected, WrongDevice
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrolled, works_again
from tests.conformance.rigs import ACCOUNT, PATIENCE, SEEDS, bridged, plugged_in, running

pytestmark = pytest.mark.anyio


async def first(events, count):
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


async def test_states_are_told_in_order(rig):
    async with bridged(rig) as (bridge, [device]):
        events = bridge.events()
        await bridge.xpub(device.id, ACCOUNT)
        await rig.unplug()
        await bridge.refresh()
        await rig.plug_in()
        await bridge.refresh()
        seen = [(event.old, event.new) for event in await first(events, 6)]
    s = DeviceState
    assert seen == [
        (s.READY, s.BUSY),
        (s.BUSY, s.READY),
        (s.READY, s.ABSENT),
        (s.ABSENT, s.PRESENT),
        (s.PRESENT, s.PROBING),
        (s.PROBING, s.READY),
    ]


async def test_a_device_that_is_gone_is_disconnected_and_forgotten(rig):
    async with bridged(rig) as (bridge, [device]):
        await rig.unplug()
        with pytest.raises(Disconnected):
            await bridge.xpub(device.id, ACCOUNT)
        assert await bridge.refresh() == ()
        for operation in (
            bridge.xpub(device.id, ACCOUNT),
            bridge.sign(device.id, payments.make_spend(VAULT), VAULT),
            bridge.identify(device.id),
        ):
            with pytest.raises(Disconnected):
                await operation
        await rig.plug_in()
        await works_again(bridge, device, rig)


async def test_watching_notices_and_probes(rig):
    async with bridged(rig) as (bridge, [device]):
        events = bridge.events()
        async with running(bridge.watch(0.01)):
            await rig.unplug()
            ((gone),) = await first(events, 1)
            assert (gone.device_id, gone.new) == (device.id, DeviceState.ABSENT)
            await rig.plug_in()
            *_, ready = await first(events, 3)
    assert ready.new == DeviceState.READY
    assert ready.device.fingerprint == rig.seed.fingerprint


def at_the_same_place(rig, make, folder):
    other = make.rig(folder, seed=SEEDS[1])
    other.endpoint, other.socket = rig.endpoint, rig.socket
    return other


@pytest.mark.parametrize("make", makes.VIRTUAL, ids=makes.named)
async def test_s18_another_device_that_was_put_in_unnoticed(make, folder):
    """A signer of the same vault, even: the person is told before anything is shown on it."""
    rig = make.rig(folder)
    async with enrolled(rig) as (bridge, device):
        await rig.unplug()
        other = at_the_same_place(rig, make, folder)
        async with plugged_in(other):
            shown = Shown(other)
            with pytest.raises((WrongDevice, Disconnected)):
                await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
            assert shown.prompts == []
            await bridge.refresh()
            await works_again(bridge, device, other)


async def test_a_device_shows_itself(rig):
    shown = []
    async with bridged(rig) as (bridge, [device]):
        rig.panel.watch(lambda event: shown.append(event.prompt))
        await bridge.identify(device.id)
        await rig.looked()
        assert shown
        await works_again(bridge, device, rig)


async def test_a_device_is_found_ready_and_named(rig, make):
    async with bridged(rig) as (bridge, [device]):
        assert device.state == DeviceState.READY
        assert device.fingerprint == rig.seed.fingerprint
        assert device.family == make.family
        assert device.emulator
        assert device.model.endswith("(emulator)")
        assert await bridge.list() == (device,)
