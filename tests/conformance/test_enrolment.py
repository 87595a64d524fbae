"""How a device gets to know a vault: once, by a person, where its make wants that."""

import pytest

from device_simulators.coldcard import VirtualColdcard
from device_simulators.panel import Decision, refuse_all
from firmware_bridge import (
    Family,
    NotEnrolled,
    RegistrationsInMemory,
    Unsupported,
    WrongDevice,
)
from multisig import Vault
from tests.conformance import makes, payments
from tests.conformance.makes import NAME, VAULT, Shown, enrol, sign_and_check
from tests.conformance.rigs import NETWORK, SEEDS, Seed, bridged

pytestmark = pytest.mark.anyio


@pytest.fixture(params=makes.ENROLLING, ids=makes.named)
def strict_rig(request, folder):
    """A device that signs only for vaults it knows."""
    return request.param.rig(folder)


async def test_a_vault_is_confirmed_where_the_make_wants_that(rig, make):
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        await enrol(bridge, device)
    assert {kind.partition("-")[0] for kind in shown.kinds} == ({"enrol"} if make.enrols else set())


async def test_the_person_sees_the_name_and_every_cosigner(strict_rig):
    """A Coldcard shows the cosigners on its key 1 only, which other hands do not have."""
    if strict_rig.is_remote and strict_rig.family is Family.COLDCARD:
        pytest.skip("these hands have no key 1")

    def look_closer(_prompt):
        if isinstance(strict_rig.device, VirtualColdcard):
            strict_rig.device.press_1()
        return Decision.YES

    lines = []
    strict_rig.panel.watch(lambda event: lines.extend(event.prompt.lines))
    strict_rig.panel.script = look_closer
    async with bridged(strict_rig) as (bridge, [device]):
        await enrol(bridge, device)
    text = makes.bare("".join(lines))
    assert NAME in text
    assert all(str(seed.fingerprint) in text.lower() for seed in SEEDS)


async def test_a_vault_is_enrolled_once(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = refuse_all
        await enrol(bridge, device)


async def test_a_vault_that_the_device_does_not_know(strict_rig):
    async with bridged(strict_rig) as (bridge, [device]):
        with pytest.raises(NotEnrolled):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
        await enrol(bridge, device)
        await sign_and_check(bridge, device, strict_rig)


async def test_s18_a_device_that_is_no_cosigner_is_not_asked(folder):
    for make in makes.ENROLLING:
        stranger = make.rig(folder, seed=Seed.from_entropy(b"9" * 16))
        async with bridged(stranger) as (bridge, [device]):
            shown = Shown(stranger)
            with pytest.raises(WrongDevice):
                await enrol(bridge, device)
        assert shown.prompts == []


async def test_a_name_that_the_make_does_not_take(strict_rig):
    async with bridged(strict_rig) as (bridge, [device]):
        for name in ("", "x" * 65, "Ünlü", " padded "):
            with pytest.raises(Unsupported):
                await bridge.enrol(device.id, VAULT, name)


async def test_enrolment_outlives_the_program(strict_rig):
    """On the device itself, or by the proof that the program keeps."""
    kept = RegistrationsInMemory()
    async with bridged(strict_rig, registrations=kept) as (bridge, [device]):
        await enrol(bridge, device)
    strict_rig.panel.script = makes.approve_all
    async with bridged(strict_rig, registrations=kept) as (bridge, [device]):
        shown = Shown(strict_rig)
        await enrol(bridge, device)
        assert shown.prompts == []
        await sign_and_check(bridge, device, strict_rig)


async def test_proofs_are_kept_by_the_program_and_nothing_else_is(rig, make):
    kept = RegistrationsInMemory()
    async with bridged(rig, registrations=kept) as (bridge, [device]):
        await enrol(bridge, device)
    found = kept.find(rig.seed.fingerprint, VAULT.verification_code)
    assert len(kept.all()) == (1 if make.proves else 0)
    assert (found is not None) == make.proves
    assert found is None or found.name == NAME


@pytest.mark.parametrize("make", [make for make in makes.ENROLLING if make.proves], ids=makes.named)
async def test_a_lost_proof_costs_one_more_look(make, folder):
    rig = make.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
    async with bridged(rig) as (bridge, [device]):
        with pytest.raises(NotEnrolled):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
        shown = Shown(rig)
        await enrol(bridge, device)
        assert shown.prompts
        await sign_and_check(bridge, device, rig)


@pytest.mark.parametrize("make", makes.ENROLLING, ids=makes.named)
async def test_s16_another_quorum_of_the_same_cosigners_is_another_vault(make, folder):
    rig = make.rig(folder)
    other = Vault(NETWORK, 1, VAULT.cosigners)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        shown = Shown(rig)
        with pytest.raises(NotEnrolled):
            await bridge.sign(device.id, payments.make_spend(other), other)
    assert shown.prompts == []
