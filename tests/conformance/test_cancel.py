"""Only the person presses a button, also where the device would let its host do it, and a no is a no; an
operation given up, one that comes too early, and workers that come and go.
"""

import asyncio
import logging

import pytest

from device_simulators.panel import approve_all, ask_person
from firmware_bridge import Bridge, Busy, Cancelled, DeviceState, RefusedByPerson, TimedOut
from tests.conformance import makes, payments, rigs
from tests.conformance.makes import VAULT, Shown, enrol, settle, sign_and_check, works_again
from tests.conformance.rigs import ACCOUNT, NETWORK, PATIENCE, bridged, running

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("operation", makes.ASKS.values(), ids=makes.ASKS)
async def test_cancel_while_the_person_thinks(rig, make, operation):
    """The worker of the cancelled operation lives on: the next one does not have to clean up after it."""
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = ask_person
        started = len(rig.workers)
        async with running(operation(bridge, device)) as waiting:
            await rig.shown("")
            await bridge.cancel(device.id)
            with pytest.raises(Cancelled):
                await waiting
        assert len(rig.workers) == started
        assert rig.workers[-1].is_alive()
        if make.clears:
            await rig.cleared()
        await works_again(bridge, device, rig)


async def test_cancel_without_an_operation_does_nothing(rig):
    async with bridged(rig) as (bridge, [device]):
        await bridge.cancel(device.id)
        await bridge.cancel("no such device")
        await works_again(bridge, device, rig)


async def test_a_cancelled_call_leaves_nothing_running(rig):
    """As when a window is closed: the task is cancelled, not the operation."""
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = ask_person
        async with running(bridge.sign(device.id, payments.make_spend(VAULT), VAULT)) as signing:
            await rig.shown()
            signing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await signing
        await works_again(bridge, device, rig)


async def test_leaving_the_bridge_in_the_middle(make, folder):
    rig = make.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = ask_person
        signing = asyncio.create_task(bridge.sign(device.id, payments.make_spend(VAULT), VAULT))
        await rig.shown()
    with pytest.raises(Cancelled):
        await signing
    await asyncio.gather(*(ended(worker) for worker in rig.workers))


async def test_leaving_the_bridge_in_the_middle_clears_a_trezors_screen(folder):
    rig = makes.TREZOR.rig(folder)
    rig.panel.script = ask_person
    async with rigs.plugged_in(rig) as endpoint:
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=rigs.QUICK) as bridge:
            await bridge.refresh()
            signing = asyncio.create_task(bridge.sign(endpoint.device_id, payments.make_spend(VAULT), VAULT))
            await rig.shown()
        with pytest.raises(Cancelled):
            await signing
        await rig.cleared()


async def test_a_second_operation_is_busy_and_the_first_goes_on(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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


async def test_workers_find_hwi_preloaded(folder, caplog):
    """The fork server skips a preload that fails without a word; the lane says so."""
    rig = makes.TREZOR.rig(folder)
    with caplog.at_level(logging.WARNING):
        async with bridged(rig):
            assert rig.workers
    assert "not preloaded" not in caplog.text


async def ended(worker) -> None:
    """Without a call that blocks the loop, which the fakes' threads need."""
    async with asyncio.timeout(PATIENCE):
        while worker.is_alive():
            await asyncio.to_thread(worker.join, 0.05) if hasattr(worker, "join") else await asyncio.sleep(0)


async def test_a_question_that_was_given_up_on_a_ledger_is_told_until_it_is_answered(folder):
    """The person is not told to answer it with yes: a yes would sign nothing, and without its host close the
    app.
    """
    rig = makes.LEDGER.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = ask_person
        async with running(bridge.sign(device.id, payments.make_spend(VAULT), VAULT)) as signing:
            await rig.shown()
            await bridge.cancel(device.id)
            with pytest.raises(Cancelled):
                await signing
        (now,) = await bridge.list()
        assert (now.state, "answer no there" in now.detail) == (DeviceState.BUSY, True)
        with pytest.raises(Busy) as caught:
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
        assert "answer no there" in caught.value.hint
        rig.panel.press_no()
        (now,) = await bridge.refresh()
        while now.state == DeviceState.BUSY:
            (now,) = await bridge.refresh()
        assert now.state == DeviceState.READY
        await works_again(bridge, device, rig)


async def test_a_ledger_that_is_not_answered_in_time_says_to_answer_no(folder):
    rig = makes.LEDGER.rig(folder)
    async with bridged(rig, deadlines=rigs.replace_deadlines(person=0.5)) as (bridge, [device]):
        await enrol(bridge, device)
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
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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


@pytest.mark.parametrize("make", PRESSED_BY_HWI, ids=makes.named)
async def test_an_enrolment_or_address_is_not_pressed_away_either(make, folder):
    rig = make.rig(folder, allow_keypress=True)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = ask_person
        shown = Shown(rig)
        async with running(bridge.show_address(device.id, VAULT, 0, 0)) as task:
            await rig.shown("")
            await asyncio.wait({task}, timeout=0.3)
            assert rig.panel.pending is not None
            assert len(shown.prompts) == 1
            rig.panel.press_yes()
            assert await task == VAULT.address(0, 0)
