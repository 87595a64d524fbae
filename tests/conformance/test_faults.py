"""The fault matrix: every cell ends in its outcome, in time, and the next operation works."""

import asyncio

import pytest

from device_simulators.faults import Faults, Phase
from firmware_bridge import BridgeError, DeviceFault, DeviceState, Disconnected, TimedOut
from tests.conformance import fault_matrix, makes, payments, rigs
from tests.conformance.fault_matrix import FAULTS, OUTCOMES, PATIENCE, possible
from tests.conformance.makes import VAULT, enrol, settle, sign_and_check, works_again
from tests.conformance.rigs import bridged, running
from tests.support.examples import drawn

pytestmark = pytest.mark.anyio

# The fakes differ in how vaults are known, and in no fault.
MAKES = makes.FAST
CELLS = [
    (name, make)
    for name in FAULTS
    for make in drawn(MAKES, len(MAKES), of=name)
    if not (make.fake and name in fault_matrix.AT_THE_WIRE)
]


@pytest.fixture
def waits(monkeypatch):
    """How long the bridge waits for a device or a person at most, each time that it says so anew."""
    lengths = []

    class Watched(asyncio.Timeout):
        def reschedule(self, when):
            lengths.append(when - asyncio.get_running_loop().time())
            super().reschedule(when)

    monkeypatch.setattr(asyncio, "timeout_at", Watched)
    return lengths


@pytest.mark.parametrize(("name", "make"), CELLS, ids=lambda value: getattr(value, "name", value))
async def test_every_fault_ends_in_its_outcome_and_the_next_operation_works(name, make, folder, waits):
    fault, outcome = FAULTS[name], OUTCOMES[name][make.family]
    rig = make.rig(folder, **make.pin)
    # Elsewhere the outcome has to come before the person's deadline, for else it would be that.
    short = dict.fromkeys(("person", "work", "read"), fault.patience) if outcome is TimedOut else {}
    deadlines = rigs.replace_deadlines(**short)
    async with bridged(rig, deadlines=deadlines) as (bridge, [device]):
        rig.device.unlock()
        await enrol(bridge, device)
        waits.clear()
        fault.prepare(rig)
        if fault.before is not None:
            await fault.before(rig)
        async with running(bridge.sign(device.id, payments.make_spend(VAULT), VAULT)) as signing:
            if fault.strike is not None:
                await rig.shown()
                await fault.strike(rig)
            if outcome is None:
                settle(rig)
                assert (await signing) != payments.make_spend(VAULT)
            else:
                with pytest.raises(BridgeError) as caught:
                    await signing
                assert type(caught.value) in possible(outcome)
        assert 0 < max(waits) <= deadlines.person
        await recover(rig, name)
        await works_again(bridge, device, rig)


async def recover(rig, name) -> None:
    """What a person does: answer what is on the screen, unlock, plug in again what has gone or stopped
    answering.
    """
    settle(rig)
    if name in fault_matrix.PLUGGED_IN_AGAIN or OUTCOMES[name][rig.family] is Disconnected:
        await rig.mend()
    rig.device.unlock()


async def test_a_trezor_that_is_locked_while_it_is_asked_needs_no_second_approval(folder):
    """S18: what the person approved is kept until the device has shown that its keys are the same."""
    rig = makes.TREZOR.rig(folder, **makes.TREZOR.pin)
    async with bridged(rig) as (bridge, [device]):
        rig.device.unlock()
        await struck(bridge, device, rig, "lock")
        rig.device.unlock()
        shown = makes.Shown(rig)
        await sign_and_check(bridge, device, rig)
        assert shown.prompts == []


async def struck(bridge, device, rig, name) -> None:
    """A signature that ends in this fault."""
    fault = FAULTS[name]
    fault.prepare(rig)
    async with running(bridge.sign(device.id, payments.make_spend(VAULT), VAULT)) as signing:
        await rig.shown()
        await fault.strike(rig)
        with pytest.raises(possible(OUTCOMES[name][rig.family])):
            await signing


# -- while no person is asked: at hello, and when a key was asked for --------------------------------------
READING_OUTCOMES = {"stall_at": TimedOut, "vanish_at": Disconnected, "garbage_at": DeviceFault}


@pytest.mark.parametrize("make", drawn(MAKES, len(MAKES), of="hello"), ids=makes.named)
@pytest.mark.parametrize("fault", READING_OUTCOMES)
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
