"""What the fake offers to the tests of other programs, beyond what every device does."""

import asyncio

import pytest

from device_simulators import fake
from device_simulators.fake import FakeDevice, bridge_to
from device_simulators.faults import Faults, Phase
from device_simulators.panel import ask_person
from firmware_bridge import Bridge, DeviceState, Disconnected, RefusedByPerson, TimedOut, WorkerCrashed
from multisig import Network
from tests.conformance.rigs import ACCOUNT, NETWORK, SEEDS, make_vault, replace_deadlines, running
from tests.support import wallets

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


async def test_it_counts_what_reached_it_and_nothing_else():
    device = FakeDevice(SEEDS[0], NETWORK)
    psbt = wallets.with_input(wallets.make_spend(VAULT), 0, non_witness_utxo=None)
    async with bridge_to(device, network=NETWORK) as bridge:
        (found,) = await bridge.refresh()
        await bridge.xpub(found.id, ACCOUNT)
        await asyncio.gather(bridge.sign(found.id, psbt, VAULT), return_exceptions=True)
    assert device.asked == {"probe": 1, "xpubs": 1}


async def test_the_label_and_the_model_are_what_it_is_given():
    device = FakeDevice(SEEDS[0], NETWORK, model="Toy", label="Anna's")
    async with bridge_to(device, network=NETWORK) as bridge:
        (found,) = await bridge.refresh()
    assert (found.model, found.label) == ("Toy (emulator)", "Anna's")


@pytest.mark.parametrize("phase", [Phase.PROMPT, Phase.SIGN, Phase.RETURN])
async def test_a_fake_stalls_over_a_message_as_over_a_transaction(phase):
    device = FakeDevice(SEEDS[0], NETWORK, faults=Faults(stall_at=phase))
    deadlines = replace_deadlines(work=0.1, person=0.1, grace=0.1)
    async with bridge_to(device, network=NETWORK, deadlines=deadlines) as bridge:
        (found,) = await bridge.refresh()
        with pytest.raises(TimedOut):
            await bridge.sign_message(found.id, "I am here", ACCOUNT / "0/0")


async def test_a_killed_fake_says_nothing_more():
    """What a test of `WorkerCrashed` wants: the spawner's processes can be killed."""
    device = FakeDevice(SEEDS[0], NETWORK, script=ask_person)
    spawned = []
    spawn = fake.spawner_of(device)

    def recording(*arguments):
        spawned.append(spawn(*arguments))
        return spawned[-1]

    bridge = Bridge(network=NETWORK, usb=False, listings=[fake.listing_of(device)], spawner=recording)
    async with bridge:
        (found,) = await bridge.refresh()
        async with running(bridge.sign(found.id, wallets.make_spend(VAULT), VAULT)) as signing:
            await device.shown("sign")
            spawned[-1].kill()
            with pytest.raises(WorkerCrashed):
                await signing
        assert not spawned[-1].is_alive()


async def test_a_fake_tells_no_secret():
    device = FakeDevice(SEEDS[0], Network.REGTEST, pin="123456789")
    assert "123456789" not in repr(vars(device)["seed"]) + repr(device)


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


async def test_an_unknown_id_is_named():
    async with bridge_to(FakeDevice(SEEDS[0], NETWORK), network=NETWORK) as bridge:
        with pytest.raises(Disconnected, match=r"the id 'trezor-0'"):
            await bridge.fingerprint("trezor-0")
