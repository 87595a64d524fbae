"""How a device gets to know a vault: once, by a person, where its make wants that."""

import pytest

from firmware_bridge import NotEnrolled, RegistrationsInMemory, WrongDevice
from multisig import Vault
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrol, enrolled, sign_and_check
from tests.conformance.rigs import NETWORK, Seed, bridged

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
