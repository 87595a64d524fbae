"""Refusals, and devices of another network."""

import pytest

from device_simulators.conformance import makes, payments, rigs
from device_simulators.conformance.makes import VAULT, enrol, works_again
from device_simulators.conformance.rigs import ACCOUNT, bridged
from device_simulators.panel import refuse_all
from firmware_bridge import (
    Bridge,
    DeviceState,
    RefusedByPerson,
    WrongApp,
)
from multisig import Network, multisig_account_path

pytestmark = pytest.mark.anyio


async def test_refusal_of_a_transaction(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = refuse_all
        with pytest.raises(RefusedByPerson):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
        (after,) = await bridge.list()
        assert after.state == DeviceState.READY
        await works_again(bridge, device, rig)


async def test_refusal_of_a_message(rig):
    async with bridged(rig) as (bridge, [device]):
        rig.panel.script = refuse_all
        with pytest.raises(RefusedByPerson):
            await bridge.sign_message(device.id, "I am here", ACCOUNT / "0/0")
        await works_again(bridge, device, rig)


# A Trezor knows no network of its own: what it is told counts, and mainnet is what this program would tell
# it.
OF_A_NETWORK = [makes.COLDCARD, makes.LEDGER]


@pytest.mark.parametrize("make", OF_A_NETWORK, ids=makes.named)
async def test_s14_a_device_set_to_another_network_is_refused(make, folder):
    rig = make.rig(folder)
    path = multisig_account_path(Network.MAINNET)
    async with (
        rigs.plugged_in(rig) as endpoint,
        Bridge(network=Network.MAINNET, endpoints=[endpoint], usb=False) as bridge,
    ):
        (device,) = await bridge.refresh()
        with pytest.raises(WrongApp):
            await bridge.xpub(device.id, path)
