"""What every device signs, what it shows of it, and what is believed of its answer."""

import asyncio

import pytest

from device_simulators.faults import Faults
from device_simulators.panel import Decision, Prompt, ask_person, refuse_all
from firmware_bridge import BadDeviceSignature, DeviceFault, Progress, WrongDevice
from multisig import (
    CHANGE,
    Fingerprint,
    KeyOrigin,
    Psbt,
    profile_account_path,
    signer_progress,
)
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrol, enrolled, sign_and_check
from tests.conformance.rigs import NETWORK, SEEDS, bridged

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("inputs", [1, 3])
async def test_a_vault_spend_is_signed_and_verified(rig, inputs):
    psbt = payments.make_spend(VAULT, n_inputs=inputs)
    async with enrolled(rig) as (bridge, device):
        signed = await sign_and_check(bridge, device, rig, psbt)
    assert signed.tx == psbt.tx
    assert signed.without_signatures() == psbt


async def test_what_is_signed_already_is_not_asked_again(rig):
    async with enrolled(rig) as (bridge, device):
        signed = await sign_and_check(bridge, device, rig)
        rig.panel.script = refuse_all
        assert await bridge.sign(device.id, signed, VAULT) is signed


async def test_a_broken_callback_costs_no_signature(rig, caplog):
    def broken(_progress):
        raise RuntimeError("a bug of the caller")

    async with enrolled(rig) as (bridge, device):
        await sign_and_check(bridge, device, rig, on_progress=broken)
    assert "a bug of the caller" in caplog.text


async def test_three_devices_sign_at_the_same_time(folder):
    three = [make.rig(folder, seed=seed) for make, seed in zip(makes.VIRTUAL, SEEDS, strict=True)]
    psbt = payments.make_spend(VAULT)
    async with bridged(*three) as (bridge, devices):
        for rig, device in zip(three, devices, strict=True):
            await enrol(bridge, device)
            rig.panel.script = ask_person
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(sign_and_check(bridge, device, rig, psbt))
                for rig, device in zip(three, devices, strict=True)
            ]
            # All three wait for a person before the first one gets an answer.
            for rig in three:
                await rig.shown()
            assert not any(task.done() for task in tasks)
            for rig in three:
                makes.settle(rig)


async def test_s19_a_wrong_signature_is_named_by_its_input(rig):
    async with enrolled(rig) as (bridge, device):
        rig.device.faults = Faults(wrong_signatures=frozenset({1}))
        with pytest.raises(BadDeviceSignature) as caught:
            await bridge.sign(device.id, payments.make_spend(VAULT, n_inputs=3), VAULT)
        assert caught.value.input_index == 1


async def test_inputs_left_unsigned_are_told(rig, make):
    told: list[Progress] = []
    async with enrolled(rig) as (bridge, device):
        rig.device.faults = Faults(missing_signatures=frozenset({1}))
        psbt = payments.make_spend(VAULT, n_inputs=3)
        if not make.partial:
            with pytest.raises(DeviceFault):
                await bridge.sign(device.id, psbt, VAULT)
            return
        signed = await bridge.sign(device.id, psbt, VAULT, on_progress=told.append)
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).missing == (1,)
    (incomplete,) = [note.text for note in told if note.step == "incomplete"]
    assert "1" in incomplete


async def test_s18_another_signer_of_the_vault_is_not_the_one_that_was_asked_for(rig):
    async with enrolled(rig) as (bridge, device):
        shown = Shown(rig)
        psbt = payments.make_spend(VAULT)
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, psbt, VAULT, signer=SEEDS[1].fingerprint)
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, psbt, VAULT, signer=Fingerprint(b"none"))
        assert shown.prompts == []
        await sign_and_check(bridge, device, rig, signer=rig.seed.fingerprint)


def swap_keys(rig):
    """A host that gives another passphrase while the person looks."""

    def decide(prompt: Prompt) -> Decision:
        if prompt.kind == "sign-total":
            rig.device.seed = SEEDS[1]
        return Decision.YES

    return decide


@pytest.mark.parametrize("make", makes.FAKES, ids=makes.named)
async def test_s18_keys_that_change_while_the_person_looks(make, folder):
    rig = make.rig(folder)
    async with enrolled(rig) as (bridge, device):
        rig.panel.script = swap_keys(rig)
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)


SPEND = payments.make_spend(VAULT)
PLACE = {"derivations": VAULT.derivations(CHANGE, 9), "witness_script": VAULT.witness_script(CHANGE, 9)}


def with_a_key_of(rig) -> Psbt:
    """A second key in the first input, said to be the device's own."""
    origin = KeyOrigin(rig.seed.fingerprint, profile_account_path(NETWORK) / "0/0")
    return payments.with_input(
        SPEND, 0, derivations={bytes((2, *bytes(31), 1)): origin, **SPEND.inputs[0].derivations}
    )


@pytest.mark.parametrize(
    "falsify",
    [
        pytest.param(lambda _rig: payments.with_output(SPEND, 0, **PLACE), id="S1: a payment that is change"),
        pytest.param(lambda _rig: payments.with_input(SPEND, 0, sighash_type=2), id="S8: no outputs signed"),
        pytest.param(with_a_key_of, id="S9: a key somewhere else"),
    ],
)
async def test_s1_s8_s9_what_is_merely_said_changes_neither_screen_nor_signature(rig, falsify):
    """None of it is the device's fault, so none of it may end as its bad signature."""
    async with enrolled(rig) as (bridge, device):
        honest = Shown(rig)
        expected = await sign_and_check(bridge, device, rig, SPEND)
        lied = Shown(rig)
        signed = await sign_and_check(bridge, device, rig, falsify(rig))
    assert [prompt.lines for prompt in lied.prompts] == [prompt.lines for prompt in honest.prompts][
        : len(lied.prompts)
    ]
    assert len(honest.prompts) == 2 * len(lied.prompts)
    taken = [item.partial_signatures for item in signed.inputs]
    assert taken == [item.partial_signatures for item in expected.inputs]
