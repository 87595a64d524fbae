"""Races: an operation and a probe, two waiting for one probe, a device that is unplugged and plugged in; and
a device that nobody uses.
"""

import asyncio
import itertools
from dataclasses import replace

import pytest

from firmware_bridge import Cancelled, DeviceState, Family, Uninitialised
from tests.conformance.makes import VAULT
from tests.conformance.rigs import ACCOUNT, QUICK, bridged, make_fake, make_rig, replace_deadlines, running
from tests.support.wallets import make_spend

pytestmark = pytest.mark.anyio


class Holders:
    """Reports that no program holds the device, when the test allows it."""

    def __init__(self):
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def __call__(self, _endpoint):
        self.asked.set()
        await self.answer.wait()


def seemed_held(bridge):
    """The next probe first finds out whether another program still has the device; then it takes the lane."""
    (record,) = bridge._roster.records.values()
    record.held, record.probed_at = True, None
    holders = bridge._roster._prober.find_holder = Holders()
    return record, holders


async def test_an_operation_waits_for_a_probe_that_has_not_taken_the_lane_yet():
    async with asyncio.timeout(QUICK.read), bridged(make_fake(Family.TREZOR)) as (bridge, (device,)):
        _record, holders = seemed_held(bridge)
        refreshing = asyncio.create_task(bridge.refresh())
        await holders.asked.wait()
        reading = asyncio.create_task(bridge.fingerprint(device.id))
        await asyncio.sleep(0)
        holders.answer.set()
        assert await reading == device.fingerprint
        assert [found.state for found in await refreshing] == [DeviceState.READY]


async def test_a_probe_of_the_device_that_left_says_nothing_of_the_one_that_came():
    rig = make_fake(Family.TREZOR)
    async with asyncio.timeout(QUICK.read), bridged(rig) as (bridge, _devices):
        record, holders = seemed_held(bridge)
        events = bridge.events()
        refreshing = asyncio.create_task(bridge.refresh())
        await holders.asked.wait()
        old = record.probe
        await rig.unplug()
        await rig.plug_in()
        (found,) = await bridge.refresh()
        assert found.state == DeviceState.READY
        assert old.cancelled()
        await refreshing
        s = DeviceState
        assert [(await anext(events)).new for _ in range(5)] == [
            s.PROBING,
            s.ABSENT,
            s.PRESENT,
            s.PROBING,
            s.READY,
        ]


async def test_a_device_that_is_ready_is_asked_nothing_however_long_it_is_watched():
    """That the looks themselves send nothing: presence/test_endpoints.py."""
    rig, looks, watched = make_fake(Family.TREZOR), itertools.count(1), asyncio.Event()
    deadlines = replace_deadlines(idle=0.0, retry=0.0)
    async with asyncio.timeout(QUICK.read), bridged(rig, deadlines=deadlines) as (bridge, (device,)):
        look, asked = bridge._roster.look, rig.device.asked.copy()

        async def counted():
            await look()
            if next(looks) == 100:
                watched.set()

        bridge._roster.look = counted
        async with running(bridge.watch(0.001)):
            await watched.wait()
        assert await bridge.list() == (device,)
    assert rig.device.asked == asked


# --- the state that follows from the end of an operation


async def test_a_question_that_was_given_up_unlocks_no_device():
    async with asyncio.timeout(QUICK.read):
        async with bridged(make_fake(Family.TREZOR, passphrase=True)) as (bridge, (device,)):
            asked = asyncio.Event()

            async def ask(_question):
                asked.set()
                await asyncio.Event().wait()

            unlocking = asyncio.create_task(bridge.unlock(device.id, ask))
            await asked.wait()
            await bridge.cancel(device.id)
            with pytest.raises(Cancelled):
                await unlocking
            assert await bridge.list() == (device,)
            assert device.state == DeviceState.NEEDS_PASSPHRASE


def keep_keys(rig, *, kept: bool) -> None:
    """Wiped, or set up again, while it stays connected."""
    dispatcher = rig.device._dispatcher
    dispatcher._features = replace(dispatcher._features, initialized=kept)


@pytest.mark.parametrize("operation", ["fingerprint", "xpub", "enrol", "sign", "identify"])
async def test_a_device_that_was_wiped_while_connected_is_not_ready(tmp_path, operation):
    rig = make_rig(Family.TREZOR, tmp_path)
    async with bridged(rig) as (bridge, (device,)):
        assert device.state == DeviceState.READY
        keep_keys(rig, kept=False)
        arguments = {
            "xpub": (ACCOUNT,),
            "enrol": (VAULT, "Ours"),
            "sign": (make_spend(VAULT), VAULT),
        }.get(operation, ())
        with pytest.raises(Uninitialised) as caught:
            await getattr(bridge, operation)(device.id, *arguments)
        assert caught.value.hint.startswith("Set it up first")
        (wiped,) = await bridge.refresh()
        assert (wiped.state, wiped.fingerprint) == (DeviceState.UNINITIALISED, None)
        assert wiped.detail == Uninitialised.sentence
        keep_keys(rig, kept=True)
        (restored,) = await bridge.refresh()
        assert (restored.state, restored.fingerprint) == (DeviceState.READY, rig.seed.fingerprint)
