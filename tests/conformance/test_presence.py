"""Devices that come and go, what is told of it, and what every device tells without asking the person: who it
is, and its keys.
"""

import asyncio

import pytest

from firmware_bridge import DeviceState, Disconnected, WrongDevice
from multisig import multisig_account_path, profile_account_path
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrol, works_again
from tests.conformance.payments import make_spend
from tests.conformance.rigs import (
    ACCOUNT,
    NETWORK,
    PATIENCE,
    SEEDS,
    Seed,
    bridged,
    plugged_in,
    running,
)

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


async def test_a_device_that_was_never_there(rig):
    async with bridged(rig) as (bridge, _devices):
        with pytest.raises(Disconnected):
            await bridge.xpub("trezor-000000000000", ACCOUNT)


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
async def test_another_device_at_the_same_place_is_another_device(make, folder):
    rig = make.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        await rig.unplug()
        await bridge.refresh()
        async with plugged_in(at_the_same_place(rig, make, folder)):
            (now,) = await bridge.refresh()
            assert (now.id, now.fingerprint) == (device.id, SEEDS[1].fingerprint)


@pytest.mark.parametrize("make", makes.VIRTUAL, ids=makes.named)
async def test_s18_another_device_that_was_put_in_unnoticed(make, folder):
    """A signer of the same vault, even: the person is told before anything is shown on it."""
    rig = make.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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


async def test_xpubs_are_those_of_the_seed(rig):
    paths = [ACCOUNT, multisig_account_path(NETWORK, 7), profile_account_path(NETWORK)]
    async with bridged(rig) as (bridge, [device]):
        keys = await bridge.xpubs(device.id, paths)
    assert [key.origin.path for key in keys] == paths
    assert {key.fingerprint for key in keys} == {rig.seed.fingerprint}
    assert [key.xpub for key in keys] == [rig.seed.xpub(path, NETWORK) for path in paths]


async def test_reading_shows_nothing(rig):
    """The person is not asked for what any program may know."""
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        await bridge.xpub(device.id, multisig_account_path(NETWORK))
        await bridge.fingerprint(device.id)
        await bridge.refresh()
    assert shown.prompts == []


async def test_s18_a_device_of_other_keys_is_refused(make, folder):
    rig = make.rig(folder, seed=Seed.from_entropy(b"9" * 16))
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, make_spend(VAULT), VAULT)
        with pytest.raises(WrongDevice):
            await bridge.show_address(device.id, VAULT, 0, 0)
    assert shown.prompts == []
