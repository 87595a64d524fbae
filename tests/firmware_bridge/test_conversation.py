"""Operations on one device: calls, signing, the order of keys, and devices that were swapped (S18)."""

import asyncio

import pytest

from firmware_bridge import Family
from firmware_bridge.calls import policy_text
from firmware_bridge.enrolment import Registration, RegistrationsInMemory
from firmware_bridge.errors import (
    AddressMismatch,
    Busy,
    Cancelled,
    DeviceFault,
    Disconnected,
    NotEnrolled,
    RefusedByPerson,
    TimedOut,
    Unsupported,
    WrongDevice,
)
from firmware_bridge.model import Sighting
from multisig import MultisigError, Network, Vault, encode_address, signer_progress
from tests.conformance import rigs
from tests.conformance.makes import NAME
from tests.conformance.rigs import QUICK, SEEDS, bridged, make_fake
from tests.support import wallets
from tests.support.scripted import COLDCARD, LEDGER, SIGNED, SPEND, VAULT, Taken, bridge_answering, who
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio


PROOF = b"\x07" * 32
KNOWN = Registration(ALICE.fingerprint, VAULT.verification_code, "Savings", PROOF)


async def test_a_registration_is_kept_and_used_for_every_signature():
    kept = RegistrationsInMemory()
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("enrol", PROOF.hex()),
        who(ALICE),
        ("sign", SIGNED),
        who(ALICE),
        endpoint=LEDGER,
        registrations=kept,
    )
    await bridge.enrol(device, VAULT, "Savings")
    assert kept.find(ALICE.fingerprint, VAULT.verification_code) == KNOWN
    await bridge.sign(device, SPEND, VAULT)
    enrolled, signed = [args.policy for args in script.told if args]
    assert (enrolled.name, enrolled.hmac) == ("Savings", None)
    assert (signed.name, signed.hmac) == ("Savings", PROOF.hex())
    assert signed.keys == tuple(sorted(map(str, VAULT.cosigners)))


async def test_a_vault_keeps_the_name_it_was_registered_under():
    kept = RegistrationsInMemory([KNOWN])
    bridge, device, script = await bridge_answering(
        who(ALICE), ("enrol", PROOF.hex()), endpoint=LEDGER, registrations=kept
    )
    await bridge.enrol(device, VAULT, "Another name")
    (args,) = [args for args in script.told if args]
    assert (args.policy.name, args.policy.hmac, args.again) == ("Savings", PROOF.hex(), False)
    assert kept.find(ALICE.fingerprint, VAULT.verification_code) == KNOWN


async def test_a_registration_that_the_device_no_longer_takes_is_made_anew():
    kept = RegistrationsInMemory([KNOWN])
    other = b"\x08" * 32
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", NotEnrolled()),
        who(ALICE),
        ("enrol", other.hex()),
        endpoint=LEDGER,
        registrations=kept,
    )
    with pytest.raises(NotEnrolled):
        await bridge.sign(device, SPEND, VAULT)
    assert kept.find(ALICE.fingerprint, VAULT.verification_code) is None
    await bridge.enrol(device, VAULT, "Reserve")
    args = script.told[-1]
    assert (args.policy.name, args.policy.hmac, args.again) == ("Reserve", None, True)
    assert kept.find(ALICE.fingerprint, VAULT.verification_code).hmac == other


@pytest.mark.parametrize("answer", [{}, {"hmac": "07" * 32}, 5, "07", "zz" * 32, "", []])
async def test_a_registration_of_nonsense_is_a_fault(answer):
    kept = RegistrationsInMemory()
    bridge, device, _script = await bridge_answering(
        who(ALICE), ("enrol", answer), endpoint=LEDGER, registrations=kept
    )
    with pytest.raises(DeviceFault):
        await bridge.enrol(device, VAULT, "Savings")
    assert kept.all() == ()


async def test_a_name_that_the_make_does_not_take_never_reaches_the_device():
    bridge, device, script = await bridge_answering(endpoint=COLDCARD)
    with pytest.raises(Unsupported, match="1 to 20"):
        await bridge.enrol(device, VAULT, "x" * 21)
    assert script.told == []


SHOWN = VAULT.address(0, 5)


@pytest.mark.parametrize("form", [SHOWN, encode_address(VAULT.script_pubkey(0, 5), Network.TESTNET4)])
async def test_an_address_is_ours_in_every_test_networks_form(form):
    bridge, device, _script = await bridge_answering(who(ALICE), ("show_address", form))
    assert await bridge.show_address(device, VAULT, 0, 5) == SHOWN


@pytest.mark.parametrize(
    "form",
    [
        VAULT.address(0, 6),
        VAULT.address(1, 5),
        encode_address(VAULT.script_pubkey(0, 5), Network.MAINNET),
        SHOWN.upper(),
        "",
    ],
)
async def test_s13_another_address_is_an_alarm(form):
    bridge, device, _script = await bridge_answering(who(ALICE), ("show_address", form))
    with pytest.raises(AddressMismatch) as caught:
        await bridge.show_address(device, VAULT, 0, 5)
    assert caught.value.detail == (form or None)


@pytest.mark.parametrize("place", [(2, 0), (0, 1 << 31), (-1, 0)])
async def test_a_place_that_no_vault_has_never_reaches_the_device(place):
    bridge, device, script = await bridge_answering()
    with pytest.raises(MultisigError):
        await bridge.show_address(device, VAULT, *place)
    assert script.told == []


async def test_s18_keys_that_changed_since_the_device_was_last_asked():
    """Both are signers of the vault; the person is told before anything is shown on the device."""
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", SIGNED), who(ALICE), who(BOB), ("sign", SIGNED)
    )
    await bridge.sign(device, SPEND, VAULT)
    with pytest.raises(WrongDevice, match=f"was {ALICE.fingerprint} before and is {BOB.fingerprint} now"):
        await bridge.sign(device, SPEND, VAULT)
    assert len(script.answers) == 1


OTHER = wallets.make_spend(VAULT, n_inputs=3)
IS_ALICE, IS_BOB = who(ALICE), who(BOB)
SIGNS, SIGNS_OTHER = ("sign", SIGNED), ("sign", ALICE.sign(OTHER).to_base64())
BOB_SIGNS = ("sign", BOB.sign(SPEND).to_base64())
# The device leaves between its answer and the second look at its keys.
GONE = ("fingerprint", Disconnected())
CUT_OFF = (SPEND, Disconnected, IS_ALICE, SIGNS, GONE)
# What is tried in turn: a transaction, how it ends (an error, or who has signed), and the worker's answers.
STORIES = {
    "the look that is missing is made up for, without a second approval": [CUT_OFF, (SPEND, ALICE, IS_ALICE)],
    "S18: an answer from before is not taken from other keys": [
        CUT_OFF,
        (SPEND, BOB, IS_BOB, BOB_SIGNS, IS_BOB),
    ],
    "an answer to one transaction is no answer to another": [
        CUT_OFF,
        (OTHER, ALICE, IS_ALICE, SIGNS_OTHER, IS_ALICE),
    ],
    **{
        f"a worthless answer is not remembered: {name}": [
            (SPEND, Disconnected, IS_ALICE, worthless, GONE),
            (SPEND, ALICE, IS_ALICE, SIGNS, IS_ALICE),
        ]
        for name, worthless in {
            "rubbish": ("sign", "rubbish"),
            "no signature": ("sign", SPEND.to_base64()),
            "another signer's": BOB_SIGNS,
        }.items()
    },
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_an_answer_is_kept_for_its_keys_and_its_transaction_alone(story):
    bridge, device, script = await bridge_answering()
    for psbt, end, *answers in story:
        script.answers = answers
        if end is Disconnected:
            with pytest.raises(Disconnected):
                await bridge.sign(device, psbt, VAULT)
        else:
            signed = await bridge.sign(device, psbt, VAULT)
            assert signed.tx == psbt.tx
            complete = [s for s in (ALICE, BOB) if signer_progress(signed, VAULT, s.fingerprint).is_complete]
            assert complete == [end]
        assert script.answers == []


NEVER_COLLECTED = (SPEND, Taken(Cancelled()))


@pytest.mark.parametrize(
    ("tries", "resumed"),
    [
        ([(SPEND, Taken(TimedOut())), (SPEND, SIGNED)], [False, True]),
        ([(SPEND, Taken(Busy())), (SPEND, SIGNED)], [False, True]),
        ([(SPEND, Taken(RefusedByPerson())), (SPEND, SIGNED)], [False, False]),
        # What the device never took left nothing on it to come back for.
        ([(SPEND, TimedOut()), (SPEND, SIGNED)], [False, False]),
        ([(SPEND, Busy()), (SPEND, SIGNED)], [False, False]),
        # Cancel A, try B, approve A on the device, repeat A: its answer is collected, without a question.
        ([NEVER_COLLECTED, (OTHER, Busy()), (SPEND, SIGNED)], [False, False, True]),
        ([NEVER_COLLECTED, (OTHER, NotEnrolled()), (SPEND, SIGNED)], [False, False, True]),
    ],
)
async def test_only_a_conversation_that_was_cut_off_is_resumed(tries, resumed):
    bridge, device, script = await bridge_answering()
    for psbt, answer in tries:
        script.answers = [IS_ALICE, ("sign", answer), IS_ALICE]
        if answer is SIGNED:
            await bridge.sign(device, psbt, VAULT)
            continue
        with pytest.raises(type(answer.ending if isinstance(answer, Taken) else answer)):
            await bridge.sign(device, psbt, VAULT)
    assert [args.resume for args in script.told if args] == resumed


OURS = rigs.make_vault()
TURNED = Vault(OURS.network, OURS.threshold, OURS.cosigners[::-1])


def test_a_worker_is_told_the_same_of_a_vault_in_any_order():
    assert OURS != TURNED
    assert policy_text(OURS, None, "Savings") == policy_text(TURNED, None, "Savings")


def swap_after(swapped_after, bridge, record):
    """Swaps the device just as the answer arrives, after which nothing is left to abort."""
    answer = record.lane.call

    async def answer_then_swap(op, args=None, **options):
        said = await answer(op, args, **options)
        if op == swapped_after:
            next_one = Sighting(record.device.endpoint, "Another", incarnation="2")
            bridge._roster._notice(record.device.id, next_one)
        return said

    record.lane.call = answer_then_swap


async def test_s18_what_is_plugged_in_between_two_calls_is_not_asked_for_the_rest():
    bridge, device, script = await bridge_answering(who(ALICE), ("sign", SIGNED))
    (record,) = bridge._roster.records.values()
    swap_after("fingerprint", bridge, record)
    with pytest.raises(Disconnected):
        await bridge.sign(device, SPEND, VAULT)
    assert [op for op, _answer in script.answers] == ["sign"]
    assert record.device.fingerprint is None


async def test_a_password_is_not_kept_for_what_is_plugged_in_next():
    told = {"fingerprint": str(ALICE.fingerprint), "session": "a password"}
    bridge, device, _script = await bridge_answering(("unlock", told))
    (record,) = bridge._roster.records.values()
    swap_after("unlock", bridge, record)

    async def ask(_question):
        return "a password"

    with pytest.raises(Disconnected):
        await bridge.unlock(device, ask)
    assert record.lane.session is None


async def test_a_vault_unknown_to_one_device_says_nothing_of_another_in_its_place():
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", NotEnrolled()), who(BOB), ("enrol", None), endpoint=COLDCARD
    )
    with pytest.raises(NotEnrolled):
        await bridge.sign(device, SPEND, VAULT)
    (record,) = bridge._roster.records.values()
    bridge._roster._lose(record)
    await bridge._roster.look()
    await bridge.enrol(device, VAULT, NAME)
    assert script.told[-1].again is False


class Full(RegistrationsInMemory):
    """Registrations in memory that cannot be written."""

    def keep(self, registration):
        super().keep(registration)
        raise OSError(28, "No space left on device")

    def forget(self, registration):
        super().forget(registration)
        raise OSError(28, "No space left on device")


async def test_a_full_disk_takes_no_enrolment_back_that_a_person_has_approved(caplog):
    rig = make_fake(Family.LEDGER)
    async with asyncio.timeout(QUICK.person), bridged(rig, registrations=Full()) as (bridge, (device,)):
        await bridge.enrol(device.id, OURS, NAME)
        signed = await bridge.sign(device.id, wallets.make_spend(OURS), OURS)
        assert signer_progress(signed, OURS, SEEDS[0].fingerprint).is_complete
    assert "could not be stored" in caplog.text
