"""A vault that a device must know, an address that it shows: what is said, and what is believed."""

import pytest

from firmware_bridge.enrolment import Registration, RegistrationsInMemory
from firmware_bridge.errors import (
    AddressMismatch,
    DeviceFault,
    NotEnrolled,
    Unsupported,
)
from multisig import (
    MultisigError,
    Network,
    encode_address,
)
from tests.support.scripted import COLDCARD, LEDGER, SIGNED, SPEND, VAULT, bridge_answering, who
from tests.support.wallets import ALICE

pytestmark = pytest.mark.anyio


PROOF = b"\x07" * 32
KNOWN = Registration(ALICE.fingerprint, VAULT.verification_code, "Savings", PROOF)


async def test_a_registration_is_kept_and_used_for_every_signature():
    kept = RegistrationsInMemory()
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("enrol", {"hmac": PROOF.hex()}),
        who(ALICE),
        ("sign", SIGNED),
        who(ALICE),
        endpoint=LEDGER,
        registrations=kept,
    )
    await bridge.enrol(device, VAULT, "Savings")
    assert kept.find(ALICE.fingerprint, VAULT.verification_code) == KNOWN
    await bridge.sign(device, SPEND, VAULT)
    enrolled, signed = [args["policy"] for args in script.told if args]
    assert (enrolled["name"], enrolled["hmac"]) == ("Savings", None)
    assert (signed["name"], signed["hmac"]) == ("Savings", PROOF.hex())
    assert signed["keys"] == sorted(str(key) for key in VAULT.cosigners)


async def test_a_vault_keeps_the_name_it_was_registered_under():
    kept = RegistrationsInMemory([KNOWN])
    bridge, device, script = await bridge_answering(
        who(ALICE), ("enrol", {"hmac": PROOF.hex()}), endpoint=LEDGER, registrations=kept
    )
    await bridge.enrol(device, VAULT, "Another name")
    (args,) = [args for args in script.told if args]
    assert (args["policy"]["name"], args["policy"]["hmac"], args["again"]) == ("Savings", PROOF.hex(), False)
    assert kept.find(ALICE.fingerprint, VAULT.verification_code) == KNOWN


async def test_a_registration_that_the_device_no_longer_takes_is_made_anew():
    kept = RegistrationsInMemory([KNOWN])
    other = b"\x08" * 32
    bridge, device, script = await bridge_answering(
        who(ALICE),
        ("sign", NotEnrolled()),
        who(ALICE),
        ("enrol", {"hmac": other.hex()}),
        endpoint=LEDGER,
        registrations=kept,
    )
    with pytest.raises(NotEnrolled):
        await bridge.sign(device, SPEND, VAULT)
    assert kept.find(ALICE.fingerprint, VAULT.verification_code) is None
    await bridge.enrol(device, VAULT, "Reserve")
    args = script.told[-1]
    assert (args["policy"]["name"], args["policy"]["hmac"], args["again"]) == ("Reserve", None, True)
    assert kept.find(ALICE.fingerprint, VAULT.verification_code).hmac == other


@pytest.mark.parametrize("answer", [{}, {"hmac": 5}, {"hmac": "07"}, {"hmac": "zz" * 32}, "x", []])
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
    bridge, device, _script = await bridge_answering(who(ALICE), ("show_address", {"address": form}))
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
    bridge, device, _script = await bridge_answering(who(ALICE), ("show_address", {"address": form}))
    with pytest.raises(AddressMismatch) as caught:
        await bridge.show_address(device, VAULT, 0, 5)
    assert caught.value.detail == (form or None)


@pytest.mark.parametrize("answer", [None, {}, {"address": None}, "x"])
async def test_no_address_is_a_fault(answer):
    bridge, device, _script = await bridge_answering(who(ALICE), ("show_address", answer))
    with pytest.raises(DeviceFault):
        await bridge.show_address(device, VAULT, 0, 5)


@pytest.mark.parametrize("place", [(2, 0), (0, 1 << 31), (-1, 0)])
async def test_a_place_that_no_vault_has_never_reaches_the_device(place):
    bridge, device, script = await bridge_answering()
    with pytest.raises(MultisigError):
        await bridge.show_address(device, VAULT, *place)
    assert script.told == []
