"""An address is compared twice: by the bridge with the vault's own, and by the person with the device's
screen. Each network on each make: the form of keys and addresses, and a signature; HWI knows fewer networks
than there are.
"""

import pytest

from device_simulators.panel import Panel, approve_all
from firmware_bridge import Bridge
from multisig import (
    RECEIVE,
    Network,
    NetworkKind,
    encode_address,
    multisig_account_path,
    profile_account_path,
    signer_progress,
)
from tests.conformance import makes, payments
from tests.conformance.makes import NAME, Shown
from tests.conformance.rigs import COSIGNERS, QUICK, SEEDS, UNDER_TEST, VIRTUAL, Rig, plugged_in
from tests.support.wallets import make_vault

pytestmark = pytest.mark.anyio


ON_SCREEN = {NetworkKind.MAINNET: Network.MAINNET, NetworkKind.TESTNET: Network.TESTNET4}


@pytest.mark.in_process
@pytest.mark.parametrize("network", Network, ids=str)
@pytest.mark.parametrize("make", makes.VIRTUAL, ids=makes.named)
async def test_s14_keys_addresses_and_signatures_of_each_network(make, network, folder):
    seed, panel = SEEDS[0], Panel(approve_all)
    device = VIRTUAL[make.family](seed, panel, network, **UNDER_TEST.get(make.family, {}))
    rig = Rig(make.family, device, panel, seed, folder / "device.sock")
    account, own = multisig_account_path(network), profile_account_path(network)
    vault = make_vault(COSIGNERS, network=network)
    profile = COSIGNERS[0].profile(network)
    async with (
        plugged_in(rig) as endpoint,
        Bridge(network=network, endpoints=[endpoint], usb=False, deadlines=QUICK) as bridge,
    ):
        (device,) = await bridge.refresh()
        assert await bridge.xpubs(device.id, [account, own]) == (vault.cosigners[0], profile.key)
        await bridge.enrol(device.id, vault, NAME)
        shown = Shown(rig)
        for policy in (vault, profile):
            # Ours is what the caller gets, whatever form the device has for its network.
            assert await bridge.show_address(device.id, policy, RECEIVE, 3) == policy.address(RECEIVE, 3)
            form = encode_address(policy.script_pubkey(RECEIVE, 3), ON_SCREEN[network.kind])
            assert shown.says(form) or shown.says(policy.address(RECEIVE, 3))
            signed = await bridge.sign(device.id, payments.make_spend(policy), policy)
            assert signer_progress(signed, policy, seed.fingerprint).is_complete
