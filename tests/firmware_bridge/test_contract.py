"""What every device does through the bridge, whatever its make: unmodified HWI against virtual devices on their own wires."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from firmware_bridge import (
    BadDeviceSignature,
    Bridge,
    Busy,
    Cancelled,
    DeviceFault,
    DeviceState,
    Disconnected,
    Family,
    Locked,
    NotEnrolled,
    Progress,
    RefusedByPerson,
    TimedOut,
    WorkerCrashed,
    WrongApp,
    WrongDevice,
)
from firmware_bridge.virtual.faults import Faults, Phase
from firmware_bridge.virtual.panel import approve_all, ask_person, refuse_all
from multisig import (
    Network,
    Profile,
    Psbt,
    PsbtMismatch,
    multisig_account_path,
    profile_account_path,
    recover_message_key,
    signer_progress,
)
from tests.support import rigs, wallets
from tests.support.rigs import ACCOUNT, MAKES, NETWORK, SEEDS, bridged, make_rig, running

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()
MESSAGE_PATH = ACCOUNT / "0/0"


@pytest.fixture(params=MAKES)
def family(request):
    return request.param


@pytest.fixture
def folder():
    with rigs.short_folder() as name:
        yield Path(name)


@pytest.fixture
def rig(family, folder):
    return make_rig(family, folder)


async def enrolled(bridge, device):
    await bridge.enrol(device.id, VAULT, "Savings")


async def test_a_device_is_found_ready_and_named(rig):
    async with bridged(rig) as (bridge, [device]):
        assert device.state == DeviceState.READY
        assert device.fingerprint == rig.seed.fingerprint
        assert device.virtual
        assert device.model.endswith("(virtual)")
        assert await bridge.list() == (device,)


async def test_xpubs_are_those_of_the_seed(rig):
    paths = [ACCOUNT, multisig_account_path(NETWORK, 7), profile_account_path(NETWORK)]
    async with bridged(rig) as (bridge, [device]):
        keys = await bridge.xpubs(device.id, paths)
    assert [key.origin.path for key in keys] == paths
    assert {key.fingerprint for key in keys} == {rig.seed.fingerprint}
    assert [key.xpub for key in keys] == [rig.seed.xpub(path, NETWORK) for path in paths]


@pytest.mark.parametrize("inputs", [1, 3])
async def test_a_vault_spend_is_signed_and_verified(rig, inputs):
    psbt = wallets.make_spend(VAULT, n_inputs=inputs)
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        signed = await bridge.sign(device.id, psbt, VAULT)
    assert signed.tx == psbt.tx
    assert signed.without_signatures() == psbt
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete


async def test_a_profile_spend_is_signed(rig):
    path = profile_account_path(NETWORK)
    profile = Profile(
        NETWORK, rigs.OriginKey(rigs.KeyOrigin(rig.seed.fingerprint, path), rig.seed.xpub(path, NETWORK))
    )
    async with bridged(rig) as (bridge, [device]):
        signed = await bridge.sign(device.id, wallets.make_spend(profile), profile)
    assert signer_progress(signed, profile, rig.seed.fingerprint).is_complete


@pytest.mark.parametrize("size", [1, 40, 75, 76, 78, 80])
async def test_op_return_of_every_push_is_signed_as_it_stands(rig, size):
    psbt = _with_op_return(bytes(range(size)))
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        signed = await bridge.sign(device.id, psbt, VAULT)
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete


async def test_what_is_signed_already_is_not_asked_again(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        signed = await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        rig.panel.script = refuse_all
        assert await bridge.sign(device.id, signed, VAULT) is signed


async def test_change_of_the_vault_is_not_shown_as_a_payment(rig):
    kinds = []
    rig.panel.watch(lambda event: kinds.append((event.prompt.kind, event.prompt.lines)))
    psbt = wallets.make_spend(VAULT)
    change = VAULT.address(1, 7)
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        kinds.clear()
        await bridge.sign(device.id, psbt, VAULT)
    payments = [lines for kind, lines in kinds if kind == "sign-output"]
    assert not any(change in line for lines in payments for line in lines)
    if rig.family == Family.TREZOR:
        assert len(set(payments)) == 1


async def test_a_message_is_signed_by_the_key_at_the_path(rig):
    async with bridged(rig) as (bridge, [device]):
        signature = await bridge.sign_message(device.id, "I am here", MESSAGE_PATH)
    assert recover_message_key("I am here", signature) == rig.seed.public_key(MESSAGE_PATH)


async def test_progress_says_what_the_person_is_asked(rig):
    told: list[Progress] = []
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT, on_progress=told.append)
    assert {note.device_id for note in told} == {device.id}
    assert "confirm-transaction" in [note.step for note in told]


async def test_a_broken_callback_costs_no_signature(rig, caplog):
    def broken(_progress):
        raise RuntimeError("a bug of the caller")

    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        signed = await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT, on_progress=broken)
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete
    assert "a bug of the caller" in caplog.text


async def test_leaving_the_bridge_in_the_middle_clears_a_trezors_screen(folder):
    rig = make_rig(Family.TREZOR, folder)
    rig.panel.script = ask_person
    async with rigs.plugged_in(rig) as endpoint:
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=rigs.QUICK) as bridge:
            await bridge.refresh()
            signing = asyncio.create_task(bridge.sign(endpoint.device_id, wallets.make_spend(VAULT), VAULT))
            await rig.shown()
        with pytest.raises(Cancelled):
            await signing
        assert rig.panel.pending is None


async def test_refusal_of_a_transaction(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.panel.script = refuse_all
        with pytest.raises(RefusedByPerson):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        await works_again(bridge, device, rig)


async def test_refusal_of_a_message(rig):
    async with bridged(rig) as (bridge, [device]):
        rig.panel.script = refuse_all
        with pytest.raises(RefusedByPerson):
            await bridge.sign_message(device.id, "I am here", MESSAGE_PATH)


@pytest.mark.parametrize("phase", [Phase.RECEIVE, Phase.PROMPT, Phase.SIGN, Phase.RETURN])
async def test_a_stalled_device_times_out_and_works_again(rig, phase):
    deadlines = rigs.replace_deadlines(person=0.7, read=0.7)
    async with bridged(rig, deadlines=deadlines) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.device.faults = Faults(stall_at=phase)
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(TimedOut):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        assert loop.time() - started < 3.0
        await rig.mend()
        await works_again(bridge, device, rig)


async def test_a_person_who_does_not_answer_times_out_and_the_device_works_again(rig):
    deadlines = rigs.replace_deadlines(person=0.7)
    async with bridged(rig, deadlines=deadlines) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.panel.script = ask_person
        psbt = wallets.make_spend(VAULT)
        with pytest.raises(TimedOut):
            await bridge.sign(device.id, psbt, VAULT)
        rig.panel.script = approve_all
        if rig.panel.pending is not None:
            # A Coldcard keeps its question: the late yes is collected by the next attempt.
            rig.panel.press_yes()
        signed = await bridge.sign(device.id, psbt, VAULT)
        assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete


@pytest.mark.parametrize("phase", [Phase.RECEIVE, Phase.PROMPT, Phase.SIGN, Phase.RETURN])
async def test_a_device_that_vanishes_is_disconnected_and_works_again(rig, phase):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.device.faults = Faults(vanish_at=phase)
        with pytest.raises(Disconnected):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        assert await bridge.refresh() == ()
        with pytest.raises(Disconnected):
            await bridge.xpub(device.id, ACCOUNT)
        await rig.mend()
        await works_again(bridge, device, rig)


@pytest.mark.parametrize("phase", [Phase.RECEIVE, Phase.PROMPT, Phase.SIGN, Phase.RETURN])
async def test_garbage_is_a_fault_and_the_device_works_again(rig, phase):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.device.faults = Faults(garbage_at=phase)
        with pytest.raises(DeviceFault):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        await rig.mend()
        await works_again(bridge, device, rig)


async def test_s19_a_wrong_signature_is_named_by_its_input(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.device.faults = Faults(wrong_signatures=frozenset({1}))
        with pytest.raises(BadDeviceSignature) as caught:
            await bridge.sign(device.id, wallets.make_spend(VAULT, n_inputs=3), VAULT)
        assert caught.value.input_index == 1


async def test_s18_a_device_of_other_keys_is_refused(family, folder):
    stranger = rigs.Seed.from_entropy(b"9" * 16)
    async with bridged(make_rig(family, folder, seed=stranger)) as (bridge, [device]):
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)


async def test_s5_missing_previous_transactions_never_reach_the_device(rig):
    shown = []
    psbt = wallets.with_input(wallets.make_spend(VAULT), 1, non_witness_utxo=None)
    async with bridged(rig) as (bridge, [device]):
        rig.panel.watch(shown.append)
        with pytest.raises(PsbtMismatch):
            await bridge.sign(device.id, psbt, VAULT)
    assert shown == []


async def test_s4_a_false_amount_never_reaches_the_device(rig):
    psbt = wallets.make_spend(VAULT)
    spent = psbt.inputs[0].witness_utxo
    lie = wallets.TxOut(wallets.sats(spent.amount - 1), spent.script_pubkey)
    async with bridged(rig) as (bridge, [device]):
        with pytest.raises(PsbtMismatch):
            await bridge.sign(device.id, wallets.with_input(psbt, 0, witness_utxo=lie), VAULT)


async def test_a_killed_worker_is_told_and_the_next_operation_works(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.panel.script = ask_person
        async with running(bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)) as signing:
            await rig.shown()
            os.kill(worker_pid(bridge), signal.SIGKILL)
            with pytest.raises(WorkerCrashed):
                await signing
        rig.panel.script = approve_all
        if rig.panel.pending is not None:
            rig.panel.press_yes()
        await works_again(bridge, device, rig)


async def test_a_worker_that_dies_unused_is_replaced_in_silence(rig):
    async with bridged(rig) as (bridge, [device]):
        pid = worker_pid(bridge)
        os.kill(pid, signal.SIGKILL)
        assert (await bridge.xpub(device.id, ACCOUNT)).fingerprint == rig.seed.fingerprint
        assert worker_pid(bridge) != pid


async def test_cancel_while_the_person_thinks(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.panel.script = ask_person
        async with running(bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)) as signing:
            await rig.shown()
            pid = worker_pid(bridge)
            await bridge.cancel(device.id)
            with pytest.raises(Cancelled):
                await signing
        if rig.family == Family.LEDGER:
            return
        # Both makes give up politely: no worker had to die for it.
        assert worker_pid(bridge) == pid
        if rig.family == Family.TREZOR:
            assert rig.panel.pending is None
        assert (await bridge.xpub(device.id, ACCOUNT)).fingerprint == rig.seed.fingerprint


async def test_a_second_operation_is_busy_and_the_first_goes_on(rig):
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.panel.script = ask_person
        async with running(bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)) as signing:
            await rig.shown()
            with pytest.raises(Busy):
                await bridge.xpub(device.id, ACCOUNT)
            # Noticing goes on, and does not disturb: a device in use is never probed.
            (busy,) = await bridge.refresh()
            assert busy.state == DeviceState.BUSY
            rig.panel.script = approve_all
            rig.panel.press_yes()
            assert signer_progress(await signing, VAULT, rig.seed.fingerprint).is_complete


async def test_states_are_told_in_order(rig):
    async with bridged(rig) as (bridge, [device]):
        events = bridge.events()
        await bridge.xpub(device.id, ACCOUNT)
        await rig.unplug()
        await bridge.refresh()
        await rig.plug_in()
        await bridge.refresh()
        seen = [(event.old, event.new) async for event in _first(events, 5)]
    s = DeviceState
    assert seen == [
        (s.READY, s.BUSY),
        (s.BUSY, s.READY),
        (s.READY, s.ABSENT),
        (s.ABSENT, s.PRESENT),
        (s.PRESENT, s.PROBING),
    ]


async def test_hwi_was_preloaded(rig):
    async with bridged(rig) as (bridge, [_device]):
        (record,) = bridge._roster.records()
        assert record.lane.preloaded is True


async def test_s14_a_device_set_to_another_network_is_refused(folder):
    rig = make_rig(Family.COLDCARD, folder)
    async with (
        rigs.plugged_in(rig) as endpoint,
        Bridge(network=Network.MAINNET, endpoints=[endpoint], usb=False) as bridge,
    ):
        (device,) = await bridge.refresh()
        with pytest.raises(WrongApp):
            await bridge.xpub(device.id, multisig_account_path(Network.MAINNET))


async def test_a_locked_device_says_so_and_is_asked_again(family, folder):
    options = {"pin": "1234"} if family == Family.TREZOR else {}
    rig = make_rig(family, folder, **options)
    rig.device.lock()
    async with bridged(rig) as (bridge, [device]):
        assert device.state == DeviceState.LOCKED
        assert device.fingerprint is None
        with pytest.raises(Locked):
            await bridge.xpub(device.id, ACCOUNT)
        with pytest.raises(Locked):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        (after,) = await bridge.list()
        assert after.state == DeviceState.LOCKED
        if family == Family.COLDCARD:
            rig.device.unlock()
            (unlocked,) = await bridge.refresh()
            assert unlocked.state == DeviceState.READY


async def test_a_coldcard_that_is_locked_in_the_middle_of_a_session(folder):
    rig = make_rig(Family.COLDCARD, folder)
    async with bridged(rig) as (bridge, [device]):
        rig.device.lock()
        with pytest.raises(Locked):
            await bridge.xpub(device.id, ACCOUNT)


async def test_a_coldcard_does_not_sign_for_a_vault_it_does_not_know(folder):
    rig = make_rig(Family.COLDCARD, folder, xpub_policy=rigs.XpubPolicy.VERIFY)
    async with bridged(rig) as (bridge, [device]):
        with pytest.raises(NotEnrolled):
            await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        await enrolled(bridge, device)
        signed = await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete


async def test_a_coldcard_is_enrolled_once(folder):
    rig = make_rig(Family.COLDCARD, folder)
    async with bridged(rig) as (bridge, [device]):
        await enrolled(bridge, device)
        rig.panel.script = refuse_all
        await enrolled(bridge, device)


async def test_a_refused_enrolment(folder):
    rig = make_rig(Family.COLDCARD, folder)
    rig.panel.script = refuse_all
    async with bridged(rig) as (bridge, [device]):
        with pytest.raises(RefusedByPerson):
            await enrolled(bridge, device)


async def test_three_devices_sign_at_the_same_time(folder):
    three = [
        make_rig(Family.TREZOR, folder, seed=SEEDS[0]),
        make_rig(Family.COLDCARD, folder, seed=SEEDS[1]),
        make_rig(Family.COLDCARD, folder, seed=SEEDS[2]),
    ]
    psbt = wallets.make_spend(VAULT)
    async with bridged(*three) as (bridge, devices):
        for rig, device in zip(three, devices, strict=True):
            await enrolled(bridge, device)
            rig.panel.script = ask_person
        async with asyncio.TaskGroup() as group:
            signings = [group.create_task(bridge.sign(device.id, psbt, VAULT)) for device in devices]
            # All three wait for a person before the first one gets an answer.
            for rig in three:
                await rig.shown()
            for rig in three:
                rig.panel.script = approve_all
                rig.panel.press_yes()
    for rig, signing in zip(three, signings, strict=True):
        assert signer_progress(signing.result(), VAULT, rig.seed.fingerprint).is_complete


def worker_pid(bridge) -> int:
    (record,) = bridge._roster.records()
    return record.lane.worker_pid


async def works_again(bridge, device, rig) -> None:
    rig.panel.script = approve_all
    assert (await bridge.xpub(device.id, ACCOUNT)).fingerprint == rig.seed.fingerprint
    await enrolled(bridge, device)
    signed = await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete
    (now,) = await bridge.list()
    assert now.state == DeviceState.READY


def _with_op_return(data: bytes) -> Psbt:
    from multisig import CHANGE, ChangeTo, build_psbt, op_return_script

    coins = [wallets.fund(VAULT, 100_000, index=index) for index in range(2)]
    outputs = [
        wallets.pay(50_000),
        wallets.TxOut(wallets.sats(0), op_return_script(data)),
        ChangeTo(wallets.sats(149_000), CHANGE, 7),
    ]
    return build_psbt(VAULT, coins, outputs, 0)


async def _first(events, count):
    for _ in range(count):
        yield await anext(events)
