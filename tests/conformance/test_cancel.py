"""Only the person presses a button, also where the device would let its host do it, and a no is a no; an
operation given up, one that comes too early, and workers that come and go.
"""

import asyncio

import pytest

from device_simulators.panel import approve_all, ask_person
from firmware_bridge import Busy, Cancelled, DeviceState, RefusedByPerson, TimedOut
from tests.conformance import makes, payments, rigs
from tests.conformance.makes import VAULT, enrolled, settle, sign_and_check, works_again
from tests.conformance.rigs import ACCOUNT, PATIENCE, running

pytestmark = pytest.mark.anyio


async def test_leaving_the_bridge_in_the_middle(make, folder):
    rig = make.rig(folder)
    async with enrolled(rig) as (bridge, device):
        rig.panel.script = ask_person
        signing = asyncio.create_task(bridge.sign(device.id, payments.make_spend(VAULT), VAULT))
        await rig.shown()
    with pytest.raises(Cancelled):
        await signing
    await asyncio.gather(*(ended(worker) for worker in rig.workers))


async def test_a_second_operation_is_busy_and_the_first_goes_on(rig):
    async with enrolled(rig) as (bridge, device):
        rig.panel.script = ask_person
        async with running(sign_and_check(bridge, device, rig)) as signing:
            await rig.shown()
            with pytest.raises(Busy):
                await bridge.xpub(device.id, ACCOUNT)
            # Noticing goes on, and does not disturb: a device in use is never probed.
            (busy,) = await bridge.refresh()
            assert busy.state == DeviceState.BUSY
            settle(rig)
            await signing


async def ended(worker) -> None:
    """Without a call that blocks the loop, which the fakes' threads need."""
    async with asyncio.timeout(PATIENCE):
        while worker.is_alive():
            await asyncio.to_thread(worker.join, 0.05) if hasattr(worker, "join") else await asyncio.sleep(0)


async def test_a_ledger_that_is_not_answered_in_time_says_to_answer_no(folder):
    rig = makes.LEDGER.rig(folder)
    async with enrolled(rig, deadlines=rigs.replace_deadlines(person=0.5)) as (bridge, device):
        rig.panel.script = ask_person
        with pytest.raises(TimedOut) as caught:
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
        assert "answer no there" in caught.value.hint
        assert "answer what it asks" not in caught.value.hint
        await works_again(bridge, device, rig)


# The two that HWI presses the buttons of, on everything that it reaches by a socket.
PRESSED_BY_HWI = (makes.TREZOR, makes.COLDCARD)


@pytest.mark.parametrize("asked", makes.ASKS.values(), ids=makes.ASKS)
@pytest.mark.parametrize("make", PRESSED_BY_HWI, ids=makes.named)
async def test_a_person_decides_though_the_device_would_obey_its_host(make, asked, folder):
    rig = make.rig(folder, allow_keypress=True)
    async with enrolled(rig) as (bridge, device):
        rig.panel.script = ask_person
        async with running(asked(bridge, device)) as task:
            await rig.shown("")
            # Long enough for a host that presses: a Coldcard's is asked for its result every tenth of a
            # second.
            await asyncio.wait({task}, timeout=0.5)
            assert rig.panel.pending is not None
            rig.panel.press_no()
            with pytest.raises(RefusedByPerson):
                await task
        rig.panel.script = approve_all
        await makes.works_again(bridge, device, rig)
