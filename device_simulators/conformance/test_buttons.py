"""Only the person presses a button, also where the device would let its host do it; and a no is a no."""

import asyncio

import pytest

from device_simulators.conformance import makes
from device_simulators.conformance.makes import VAULT, Shown, enrol, works_again
from device_simulators.conformance.rigs import ACCOUNT, bridged, running
from device_simulators.panel import approve_all, ask_person, refuse_all
from firmware_bridge import RefusedByPerson

pytestmark = pytest.mark.anyio

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


async def test_refusal_of_a_message(rig):
    async with bridged(rig) as (bridge, [device]):
        rig.panel.script = refuse_all
        with pytest.raises(RefusedByPerson):
            await bridge.sign_message(device.id, "I am here", ACCOUNT / "0/0")
        await works_again(bridge, device, rig)
