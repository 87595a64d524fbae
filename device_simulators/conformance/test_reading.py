"""What every device tells without asking the person: who it is, and its keys."""

import pytest

from device_simulators.conformance.makes import VAULT, Shown
from device_simulators.conformance.payments import make_spend
from device_simulators.conformance.rigs import ACCOUNT, NETWORK, Seed, bridged
from firmware_bridge import Account, DeviceState, WrongDevice
from multisig import multisig_account_path, profile_account_path

pytestmark = pytest.mark.anyio


async def test_a_device_is_found_ready_and_named(rig, make):
    async with bridged(rig) as (bridge, [device]):
        assert device.state == DeviceState.READY
        assert device.fingerprint == rig.seed.fingerprint
        assert device.family == make.family
        assert device.emulator
        assert device.model.endswith("(emulator)")
        assert await bridge.list() == (device,)


async def test_xpubs_are_those_of_the_seed(rig):
    paths = [ACCOUNT, multisig_account_path(NETWORK, 7), profile_account_path(NETWORK)]
    async with bridged(rig) as (bridge, [device]):
        keys = await bridge.xpubs(device.id, paths)
    assert [key.origin.path for key in keys] == paths
    assert {key.fingerprint for key in keys} == {rig.seed.fingerprint}
    assert [key.xpub for key in keys] == [rig.seed.xpub(path, NETWORK) for path in paths]


async def test_accounts_have_a_key_for_vaults_and_one_for_the_profile(rig):
    async with bridged(rig) as (bridge, [device]):
        first, third = await bridge.accounts(device.id, [0, 2])
    assert isinstance(first, Account)
    assert (first.number, third.number) == (0, 2)
    assert third.vault_key.origin.path == multisig_account_path(NETWORK, 2)
    assert third.vault_key.xpub == rig.seed.xpub(multisig_account_path(NETWORK, 2), NETWORK)
    assert third.profile_key.xpub == rig.seed.xpub(profile_account_path(NETWORK, 2), NETWORK)


async def test_reading_shows_nothing(rig):
    """The person is not asked for what any program may know."""
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        await bridge.accounts(device.id)
        await bridge.fingerprint(device.id)
        await bridge.refresh()
    assert shown.prompts == []


async def test_s18_a_device_of_other_keys_is_refused(make, folder):
    rig = make.rig(folder, seed=Seed.from_entropy(b"9" * 16))
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, make_spend(VAULT), VAULT)
        with pytest.raises(WrongDevice):
            await bridge.show_address(device.id, VAULT, 0, 0)
    assert shown.prompts == []
