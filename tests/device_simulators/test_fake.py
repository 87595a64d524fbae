"""What the fake offers to the tests of other programs, beyond what every device does; the document."""

import pytest

from device_simulators import fake
from device_simulators.fake import FakeDevice, bridge_to
from device_simulators.panel import ask_person
from firmware_bridge import DeviceState, RefusedByPerson
from tests.conformance.rigs import ACCOUNT, NETWORK, SEEDS, make_vault, running
from tests.support import device_tables, wallets

pytestmark = pytest.mark.anyio

VAULT = make_vault()


async def test_the_example_of_the_docstring():
    device = FakeDevice(SEEDS[0], NETWORK, script=ask_person)
    async with bridge_to(device, network=NETWORK) as bridge:
        (found,) = await bridge.refresh()
        async with running(bridge.sign(found.id, wallets.make_spend(VAULT), VAULT)) as signing:
            await device.shown()
            device.panel.press_no()
            with pytest.raises(RefusedByPerson):
                await signing
    assert device.asked["sign"] == 1
    for name in ("FakeDevice(", "bridge_to(", "device.shown()", "panel.press_no()", 'device.asked["sign"]'):
        assert name in fake.__doc__


async def test_a_path_as_text_is_refused_before_the_device_is_asked():
    device = FakeDevice(SEEDS[0], NETWORK)
    async with bridge_to(device, network=NETWORK) as bridge:
        (found,) = await bridge.refresh()
        asked = device.asked.copy()
        for call in (
            bridge.xpub(found.id, str(ACCOUNT)),
            bridge.sign_message(found.id, "hello", str(ACCOUNT)),
        ):
            with pytest.raises(TypeError, match=r"DerivationPath\.parse"):
                await call
        with pytest.raises(TypeError, match=r"not 'm'"):
            await bridge.xpubs(found.id, str(ACCOUNT))
        assert (device.asked, (await bridge.list())[0].state) == (asked, DeviceState.READY)


def test_the_table_of_faults_is_the_fault_matrix():
    assert device_tables.faults() in device_tables.DOCS.read_text()


def test_the_table_of_situations_is_generated_from_the_transcripts():
    """`python -m tests.support.device_tables` writes it."""
    assert device_tables.situations() in device_tables.DOCS.read_text()
