"""What goes wrong while no person is asked: at hello, and when a key was asked for."""

import asyncio

import pytest

from device_simulators.conformance import makes, rigs
from device_simulators.conformance.makes import works_again
from device_simulators.conformance.rigs import ACCOUNT, bridged
from device_simulators.faults import Faults, Phase
from firmware_bridge import BridgeError, DeviceFault, DeviceState, Disconnected, TimedOut

pytestmark = pytest.mark.anyio

PATIENCE = 0.5
SLACK = 30.0
OUTCOMES = {"stall_at": TimedOut, "vanish_at": Disconnected, "garbage_at": DeviceFault}
CELLS = [(make, phase) for make in makes.ALL for phase in (Phase.PROBE, Phase.XPUB)]


@pytest.mark.parametrize(("make", "phase"), CELLS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("fault", OUTCOMES)
async def test_a_key_that_does_not_come(make, phase, fault, folder):
    rig = make.rig(folder)
    short = {"read": PATIENCE} if fault == "stall_at" else {}
    async with bridged(rig, deadlines=rigs.replace_deadlines(**short)) as (bridge, [device]):
        # Also what is asked at the beginning of a conversation is asked anew.
        rig.workers[-1].kill()
        rig.device.faults = Faults(**{fault: phase})
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(BridgeError) as caught:
            await bridge.xpub(device.id, ACCOUNT)
        assert type(caught.value) is OUTCOMES[fault]
        assert loop.time() - started < SLACK
        await rig.mend()
        await works_again(bridge, device, rig)


@pytest.mark.parametrize("fault", OUTCOMES)
async def test_a_device_that_fails_at_hello_is_asked_again(make, fault, folder):
    rig = make.rig(folder)
    async with bridged(rig, deadlines=rigs.replace_deadlines(probe=PATIENCE, retry_shared=0.0)) as (
        bridge,
        [device],
    ):
        rig.workers[-1].kill()
        await rig.unplug()
        await bridge.refresh()
        rig.device.faults = Faults(**{fault: Phase.PROBE})
        await rig.plug_in()
        known = await bridge.refresh()
        assert {now.state for now in known} <= {DeviceState.PRESENT, DeviceState.BUSY}
        assert all(now.fingerprint is None for now in known)
        await rig.mend()
        (now,) = await bridge.refresh()
        assert now.state == DeviceState.READY
        await works_again(bridge, device, rig)
