"""What every device signs, what it shows of it, and what is believed of its answer."""

import asyncio

import pytest

from device_simulators.faults import Faults
from device_simulators.panel import Decision, Prompt, ask_person, refuse_all
from firmware_bridge import (
    BadDeviceSignature,
    DeviceFault,
    Progress,
    WrongDevice,
)
from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    Fingerprint,
    KeyOrigin,
    Psbt,
    PsbtMismatch,
    TxOut,
    build_psbt,
    encode_address,
    op_return_script,
    p2wpkh,
    profile_account_path,
    recover_message_key,
    sats,
    signer_progress,
)
from multisig.vault import MAX_INDEX
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrol, sign_and_check
from tests.conformance.rigs import ACCOUNT, NETWORK, SEEDS, bridged, running

pytestmark = pytest.mark.anyio

MESSAGE_PATH = ACCOUNT / "0/0"


@pytest.mark.parametrize("inputs", [1, 3])
async def test_a_vault_spend_is_signed_and_verified(rig, inputs):
    psbt = payments.make_spend(VAULT, n_inputs=inputs)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        signed = await sign_and_check(bridge, device, rig, psbt)
    assert signed.tx == psbt.tx
    assert signed.without_signatures() == psbt


async def test_a_profile_spend_is_signed(rig):
    profile = makes.profile_of(rig)
    async with bridged(rig) as (bridge, [device]):
        signed = await bridge.sign(device.id, payments.make_spend(profile), profile)
    assert signer_progress(signed, profile, rig.seed.fingerprint).is_complete


def with_op_return(data: bytes) -> Psbt:
    coins = [payments.fund(VAULT, 100_000, index=index) for index in range(2)]
    outputs = [
        payments.pay(50_000),
        TxOut(sats(0), op_return_script(data)),
        ChangeTo(sats(149_000), CHANGE, 7),
    ]
    return build_psbt(VAULT, coins, outputs, 0)


@pytest.mark.parametrize("size", [75, 80])
async def test_op_return_of_every_push_is_signed_as_it_stands(rig, size):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        await sign_and_check(bridge, device, rig, with_op_return(bytes(range(size))))


async def test_what_is_signed_already_is_not_asked_again(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        signed = await sign_and_check(bridge, device, rig)
        rig.panel.script = refuse_all
        assert await bridge.sign(device.id, signed, VAULT) is signed


async def test_the_payment_is_shown_and_the_change_is_not(rig, make):
    psbt = payments.make_spend(VAULT)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        shown = Shown(rig)
        await sign_and_check(bridge, device, rig, psbt)
    assert tuple(dict.fromkeys(shown.kinds)) == make.screens
    assert len([kind for kind in shown.kinds if kind == "sign-output"]) <= 1
    assert not shown.pays(VAULT.address(CHANGE, 7))


async def test_a_message_is_signed_by_the_key_at_the_path(rig):
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        signature = await bridge.sign_message(device.id, "I am here", MESSAGE_PATH)
    assert recover_message_key("I am here", signature) == rig.seed.public_key(MESSAGE_PATH)
    assert shown.says("I am here")


async def test_progress_says_what_the_person_is_asked(rig):
    """A person who takes their time: a Ledger does not tell that it asks, and is taken to ask when it falls
    silent.
    """
    told: list[Progress] = []
    asked = asyncio.Event()

    def listen(note: Progress) -> None:
        told.append(note)
        if note.step.startswith("confirm"):
            asked.set()

    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = ask_person
        async with running(sign_and_check(bridge, device, rig, on_progress=listen)) as signing:
            await asyncio.wait_for(asked.wait(), 90)
            makes.settle(rig)
            await signing
    assert {note.device_id for note in told} == {device.id}
    assert "confirm-transaction" in [note.step for note in told]


async def test_a_broken_callback_costs_no_signature(rig, caplog):
    def broken(_progress):
        raise RuntimeError("a bug of the caller")

    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.device.faults = Faults(wrong_signatures=frozenset({1}))
        with pytest.raises(BadDeviceSignature) as caught:
            await bridge.sign(device.id, payments.make_spend(VAULT, n_inputs=3), VAULT)
        assert caught.value.input_index == 1


async def test_inputs_left_unsigned_are_told(rig, make):
    told: list[Progress] = []
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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


async def test_a_device_that_signs_nothing_has_failed(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.device.faults = Faults(missing_signatures=frozenset({0, 1}))
        with pytest.raises(DeviceFault):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)


async def test_s18_another_signer_of_the_vault_is_not_the_one_that_was_asked_for(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        rig.panel.script = swap_keys(rig)
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)


def without_previous(psbt: Psbt) -> Psbt:
    return payments.with_input(psbt, 1, non_witness_utxo=None)


def with_another_previous(psbt: Psbt) -> Psbt:
    return payments.with_input(psbt, 1, non_witness_utxo=psbt.inputs[0].non_witness_utxo)


def with_less(psbt: Psbt) -> Psbt:
    spent = psbt.inputs[0].witness_utxo
    lie = TxOut(sats(spent.amount - 1), spent.script_pubkey)
    return payments.with_input(psbt, 0, witness_utxo=lie)


@pytest.mark.parametrize(
    "falsify",
    [
        pytest.param(with_less, id="S4: a false amount"),
        pytest.param(without_previous, id="S5: no previous transaction"),
        pytest.param(with_another_previous, id="S5: another previous transaction"),
    ],
)
async def test_s4_s5_coins_that_are_not_proven_never_reach_the_device(rig, falsify):
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        shown = Shown(rig)
        with pytest.raises(PsbtMismatch):
            await bridge.sign(device.id, falsify(payments.make_spend(VAULT)), VAULT)
    assert shown.prompts == []


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
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
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


@pytest.mark.parametrize("place", [f"{CHANGE}/{MAX_INDEX + 1}", "2/0"])
async def test_s9_money_to_a_path_where_no_wallet_looks_is_shown_as_a_payment(rig, place):
    path = ACCOUNT / place
    key = rig.seed.public_key(path)
    psbt = payments.with_output(
        SPEND,
        1,
        derivations={key: KeyOrigin(rig.seed.fingerprint, path)},
        script_pubkey=p2wpkh(key),
        witness_script=None,
    )
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        shown = Shown(rig)
        await sign_and_check(bridge, device, rig, psbt)
    assert shown.says(encode_address(p2wpkh(key), NETWORK))


def shown_by(address: str) -> tuple[str, str]:
    """On regtest every device writes the test network's prefix: all but it and the checksum are the same."""
    body = address.rsplit("1", 1)[1][:-6]
    return body[:8], body[-8:]


@pytest.mark.parametrize("left", [0, 39_000])
async def test_s12_a_forward_is_signed_and_the_vaults_address_is_shown(rig, left):
    profile = makes.profile_of(rig)
    coins = [payments.fund(profile, 50_000, index=index) for index in range(2)]
    into = TxOut(sats(99_000 - left), VAULT.script_pubkey(RECEIVE, 0))
    back = [ChangeTo(sats(left), CHANGE, 3)] if left else []
    psbt = build_psbt(profile, coins, [into, *back], 0)
    shown = Shown(rig)
    async with bridged(rig) as (bridge, [device]):
        signed = await bridge.sign(device.id, psbt, profile, signer=rig.seed.fingerprint)
    assert signer_progress(signed, profile, rig.seed.fingerprint).is_complete
    assert all(shown.says(part) for part in shown_by(VAULT.address(RECEIVE, 0)))
