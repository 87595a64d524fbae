"""How a device gets to know a vault: once, by a person, where its make wants that; and its addresses, each
compared twice: by the bridge with the vault's own, and by the person with the device's screen. Each network
on each make: the form of keys and addresses, and a signature; HWI knows fewer networks than there are.
"""

import pytest

from device_simulators.panel import Panel, approve_all
from firmware_bridge import Bridge, NotEnrolled, RegistrationsInMemory, WrongDevice
from multisig import (
    RECEIVE,
    Network,
    NetworkKind,
    Vault,
    encode_address,
    multisig_account_path,
    profile_account_path,
    signer_progress,
)
from tests.conformance import makes, payments
from tests.conformance.makes import NAME, VAULT, Shown, enrol, enrolled, sign_and_check
from tests.conformance.rigs import (
    COSIGNERS,
    NETWORK,
    QUICK,
    SEEDS,
    UNDER_TEST,
    VIRTUAL,
    Rig,
    Seed,
    bridged,
    plugged_in,
)
from tests.support.wallets import make_vault

pytestmark = pytest.mark.anyio


@pytest.fixture(params=makes.ENROLLING, ids=makes.named)
def strict_rig(request, folder):
    """A device that signs only for vaults it knows."""
    return request.param.rig(folder)


async def test_s18_a_device_that_is_no_cosigner_is_not_asked(folder):
    for make in makes.ENROLLING:
        stranger = make.rig(folder, seed=Seed.from_entropy(b"9" * 16))
        async with bridged(stranger) as (bridge, [device]):
            shown = Shown(stranger)
            with pytest.raises(WrongDevice):
                await enrol(bridge, device)
        assert shown.prompts == []


async def test_enrolment_outlives_the_program(strict_rig):
    """On the device itself, or by the proof that the program keeps."""
    kept = RegistrationsInMemory()
    async with enrolled(strict_rig, registrations=kept) as (bridge, device):
        pass
    strict_rig.panel.script = makes.approve_all
    async with bridged(strict_rig, registrations=kept) as (bridge, [device]):
        shown = Shown(strict_rig)
        await enrol(bridge, device)
        assert shown.prompts == []
        await sign_and_check(bridge, device, strict_rig)


@pytest.mark.parametrize("make", makes.ENROLLING, ids=makes.named)
async def test_s16_another_quorum_of_the_same_cosigners_is_another_vault(make, folder):
    rig = make.rig(folder)
    other = Vault(NETWORK, 1, VAULT.cosigners)
    async with enrolled(rig) as (bridge, device):
        shown = Shown(rig)
        with pytest.raises(NotEnrolled):
            await bridge.sign(device.id, payments.make_spend(other), other)
    assert shown.prompts == []


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
