"""An address is compared twice: by the bridge with the vault's own, and by the person with the device's
screen.
"""

import pytest

from device_simulators.conformance import makes
from device_simulators.conformance.makes import VAULT, Shown, enrol
from device_simulators.conformance.rigs import bridged, running
from device_simulators.panel import ask_person, refuse_all
from firmware_bridge import AddressMismatch, Cancelled, NotEnrolled, RefusedByPerson, calls
from multisig import CHANGE, RECEIVE, Network, encode_address

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("chain", "index"), [(RECEIVE, 0), (CHANGE, 5), (RECEIVE, 999)])
async def test_a_vaults_address_is_shown(rig, chain, index):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        shown = Shown(rig)
        address = await bridge.show_address(device.id, VAULT, chain, index)
    assert address == VAULT.address(chain, index)
    # A small screen breaks it into lines.
    assert address in "".join(shown.text.split())


async def test_a_profiles_address_is_shown(rig):
    profile = makes.profile_of(rig)
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        address = await bridge.show_address(device.id, profile, RECEIVE, 3)
    assert address == profile.address(RECEIVE, 3)
    assert address in "".join(shown.text.split())


async def test_a_person_who_sees_another_address(rig, make):
    """A Trezor's left button only turns the pages: there the no is said on this computer, and takes the
    address off the screen.
    """
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = refuse_all
        if make in makes.SHOWS_ONLY:
            assert await bridge.show_address(device.id, VAULT, RECEIVE, 0) == VAULT.address(RECEIVE, 0)
        elif make is makes.TREZOR:
            rig.panel.script = ask_person
            async with running(bridge.show_address(device.id, VAULT, RECEIVE, 0)) as showing:
                await rig.shown("address")
                rig.panel.press_no()
                await rig.shown("address-qr")
                await bridge.cancel(device.id)
                with pytest.raises(Cancelled):
                    await showing
            assert rig.panel.pending is None
        else:
            with pytest.raises(RefusedByPerson):
                await bridge.show_address(device.id, VAULT, RECEIVE, 0)
        await makes.works_again(bridge, device, rig)


@pytest.mark.parametrize("make", makes.ENROLLING, ids=makes.named)
async def test_an_address_of_a_vault_that_the_device_does_not_know(make, folder):
    rig = make.rig(folder, **make.strict)
    async with bridged(rig) as (bridge, [device]):
        with pytest.raises(NotEnrolled):
            await bridge.show_address(device.id, VAULT, RECEIVE, 0)


async def test_s16_a_device_with_another_address_in_mind_is_not_believed(rig, monkeypatch):
    """Whatever it was enrolled with: the address that counts is the one of the vault that this program
    holds.
    """
    elsewhere = encode_address(VAULT.script_pubkey(RECEIVE, 1), Network.TESTNET4)
    true_answer = calls.require_address

    def with_another(value, policy, chain, index):
        assert value["address"] != elsewhere
        return true_answer({"address": elsewhere}, policy, chain, index)

    monkeypatch.setattr(calls, "require_address", with_another)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        with pytest.raises(AddressMismatch):
            await bridge.show_address(device.id, VAULT, RECEIVE, 0)
