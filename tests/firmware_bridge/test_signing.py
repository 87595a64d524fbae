"""What is believed of a signed transaction, and what is remembered of one that was cut off."""

import pytest

from firmware_bridge.errors import (
    Busy,
    Cancelled,
    DeviceFault,
    Disconnected,
    NotEnrolled,
    RefusedByPerson,
    TimedOut,
    WrongDevice,
)
from multisig import (
    signer_progress,
)
from tests.support import wallets
from tests.support.scripted import SIGNED, SPEND, VAULT, Taken, bridge_answering, who
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio


async def test_a_signature_is_taken_between_two_looks_at_the_same_keys():
    bridge, device, script = await bridge_answering(who(ALICE), ("sign", SIGNED), who(ALICE))
    signed = await bridge.sign(device, SPEND, VAULT)
    assert signer_progress(signed, VAULT, ALICE.fingerprint).is_complete
    assert script.answers == []


async def test_s18_keys_that_change_while_the_device_signs():
    bridge, device, _script = await bridge_answering(who(ALICE), ("sign", SIGNED), who(BOB))
    with pytest.raises(WrongDevice, match="changed its keys while it signed"):
        await bridge.sign(device, SPEND, VAULT)


async def test_s18_keys_that_changed_since_the_device_was_last_asked():
    """Both are signers of the vault; the person is told before anything is shown on the device."""
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", SIGNED), who(ALICE), who(BOB), ("sign", SIGNED)
    )
    await bridge.sign(device, SPEND, VAULT)
    with pytest.raises(WrongDevice, match=f"was {ALICE.fingerprint} before and is {BOB.fingerprint} now"):
        await bridge.sign(device, SPEND, VAULT)
    assert len(script.answers) == 1


async def test_a_device_that_signs_nothing_has_failed():
    bridge, device, _script = await bridge_answering(who(ALICE), ("sign", SPEND.to_base64()), who(ALICE))
    with pytest.raises(DeviceFault, match="no signature"):
        await bridge.sign(device, SPEND, VAULT)


async def test_the_signer_that_is_wanted_is_the_one_that_is_asked():
    bridge, device, script = await bridge_answering(who(ALICE), ("sign", SIGNED))
    with pytest.raises(WrongDevice, match=f"{BOB.fingerprint} is to sign"):
        await bridge.sign(device, SPEND, VAULT, signer=BOB.fingerprint)
    assert len(script.answers) == 1


GONE = Disconnected()


async def test_an_approval_is_not_asked_for_twice_because_of_a_loose_cable():
    """The device left between its answer and the second look at its keys; the look that is missing is made up for."""
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", SIGNED), ("fingerprint", GONE), who(ALICE)
    )
    with pytest.raises(Disconnected):
        await bridge.sign(device, SPEND, VAULT)
    signed = await bridge.sign(device, SPEND, VAULT)
    assert signer_progress(signed, VAULT, ALICE.fingerprint).is_complete
    assert script.answers == []


async def test_s18_an_answer_from_before_is_not_taken_from_other_keys():
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", SIGNED),
        ("fingerprint", GONE),
        who(BOB),
        ("sign", BOB.sign(SPEND).to_base64()),
        who(BOB),
    )
    with pytest.raises(Disconnected):
        await bridge.sign(device, SPEND, VAULT)
    signed = await bridge.sign(device, SPEND, VAULT)
    assert not signer_progress(signed, VAULT, ALICE.fingerprint).signed
    assert signer_progress(signed, VAULT, BOB.fingerprint).is_complete
    assert script.answers == []


async def test_an_answer_to_one_transaction_is_no_answer_to_another():
    other = wallets.make_spend(VAULT, n_inputs=3)
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", SIGNED),
        ("fingerprint", GONE),
        who(ALICE),
        ("sign", ALICE.sign(other).to_base64()),
        who(ALICE),
    )
    with pytest.raises(Disconnected):
        await bridge.sign(device, SPEND, VAULT)
    assert (await bridge.sign(device, other, VAULT)).tx == other.tx
    assert script.answers == []


async def test_what_was_given_up_is_asked_again():
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", SIGNED), ("fingerprint", Cancelled()), who(ALICE), ("sign", SIGNED), who(ALICE)
    )
    with pytest.raises(Cancelled):
        await bridge.sign(device, SPEND, VAULT)
    await bridge.sign(device, SPEND, VAULT)
    assert script.answers == []


@pytest.mark.parametrize(
    ("ending", "resumed"),
    [
        (Taken(TimedOut()), True),
        (Taken(Busy()), True),
        (Taken(RefusedByPerson()), False),
        (TimedOut(), False),
        (Busy(), False),
    ],
)
async def test_only_a_conversation_that_was_cut_off_is_resumed(ending, resumed):
    """What the device never took left nothing on it to come back for."""
    bridge, device, script = await bridge_answering(
        who(ALICE), ("sign", ending), who(ALICE), ("sign", SIGNED), who(ALICE)
    )
    with pytest.raises(type(ending.ending if isinstance(ending, Taken) else ending)):
        await bridge.sign(device, SPEND, VAULT)
    await bridge.sign(device, SPEND, VAULT)
    first, second = [args for args in script.told if args]
    assert (first["resume"], second["resume"]) == (False, resumed)


async def test_another_transaction_is_not_resumed():
    other = wallets.make_spend(VAULT, n_inputs=3)
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", Taken(TimedOut())),
        who(ALICE),
        ("sign", Taken(ALICE.sign(other).to_base64())),
        who(ALICE),
    )
    with pytest.raises(TimedOut):
        await bridge.sign(device, SPEND, VAULT)
    await bridge.sign(device, other, VAULT)
    assert [args["resume"] for args in script.told if args] == [False, False]


@pytest.mark.parametrize("refused", [Busy(), NotEnrolled()])
async def test_a_transaction_that_was_never_taken_does_not_replace_the_one_on_the_screen(refused):
    """Cancel A, try B, approve A on the device, repeat A: its answer is collected, and nobody is asked twice."""
    other = wallets.make_spend(VAULT, n_inputs=3)
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", Taken(Cancelled())),
        who(ALICE),
        ("sign", refused),
        who(ALICE),
        ("sign", SIGNED),
        who(ALICE),
    )
    with pytest.raises(Cancelled):
        await bridge.sign(device, SPEND, VAULT)
    with pytest.raises(type(refused)):
        await bridge.sign(device, other, VAULT)
    await bridge.sign(device, SPEND, VAULT)
    assert [args["resume"] for args in script.told if args] == [False, False, True]


@pytest.mark.parametrize("worthless", ["rubbish", SPEND.to_base64(), BOB.sign(SPEND).to_base64()])
async def test_a_worthless_answer_is_not_remembered_when_the_device_leaves(worthless):
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", worthless),
        ("fingerprint", Disconnected()),
        who(ALICE),
        ("sign", SIGNED),
        who(ALICE),
    )
    with pytest.raises(Disconnected):
        await bridge.sign(device, SPEND, VAULT)
    signed = await bridge.sign(device, SPEND, VAULT)
    assert signer_progress(signed, VAULT, ALICE.fingerprint).is_complete
    assert script.answers == []
