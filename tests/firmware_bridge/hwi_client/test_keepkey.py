"""KeepKey's driver against a virtual Trezor with a KeepKey's features; never tried on a KeepKey."""

import base64
from contextlib import asynccontextmanager

import pytest
from hwilib.devices.keepkey import KeepkeyFeatures
from hwilib.devices.trezorlib import mapping, messages
from hwilib.devices.trezorlib.exceptions import Cancelled, PinException, TrezorFailure
from hwilib.devices.trezorlib.messages import Failure

from device_simulators.conformance import rigs
from device_simulators.conformance.rigs import ACCOUNT, NETWORK, QUICK, SEEDS
from device_simulators.faults import Faults, Phase
from device_simulators.panel import Panel, approve_all, refuse_all
from firmware_bridge import Bridge, DeviceState, errors, sanitised_psbt
from firmware_bridge.hwi_client.base import failure
from firmware_bridge.hwi_client.trezor.screen import PassphraseNeeded, PinNeeded
from firmware_bridge.model import Family
from firmware_bridge.protocol import Question
from multisig import DerivationPath, Psbt, recover_message_key, signer_progress
from tests.support import wallets
from tests.support.driver import Person, drive, fails, policy_args
from tests.support.keepkey import VirtualKeepKey

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()
SEED = SEEDS[0]
PIN = "1379"
HIDDEN = SEED.with_passphrase("swordfish")


@asynccontextmanager
async def keepkey(script=approve_all, **options):
    device = VirtualKeepKey(SEED, Panel(script), NETWORK, **options)
    endpoint = await device.start()
    try:
        yield device, endpoint
    finally:
        await device.stop()


def knows_pin(device, pin=PIN, passphrase=None):
    def answer(question):
        if question is Question.PASSPHRASE:
            return passphrase
        return "".join(str(device._access.matrix.index(digit) + 1) for digit in pin)

    return Person(on_ask=answer)


def sign_args(psbt, policy=VAULT):
    content = base64.b64encode(sanitised_psbt.for_device(psbt, policy)).decode()
    return {"psbt": content, "policy": policy_args(policy), "payments": 1, "resume": False}


async def test_it_tells_who_it_is():
    async with keepkey(label="Drawer") as (_device, endpoint):
        assert await drive(endpoint, "probe") == {
            "model": "KeepKey",
            "label": "Drawer",
            "fingerprint": SEED.fingerprint.hex,
            "obstacle": None,
            "detail": None,
            "firmware": "7.10.0",
        }
        keys = await drive(endpoint, "xpubs", {"paths": [str(ACCOUNT)]})
    assert keys == {"fingerprint": SEED.fingerprint.hex, "xpubs": [str(SEED.xpub(ACCOUNT, NETWORK))]}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"pin": PIN}, errors.Locked.code, "PIN"),
        ({"passphrase_protection": True}, errors.NeedsPassphrase.code, "passphrase"),
        ({"initialized": False}, errors.Uninitialised.code, ""),
        ({"bootloader": True}, errors.Unsupported.code, "bootloader"),
    ],
)
async def test_an_obstacle_is_reported_without_a_question(options, code, words):
    person = Person()
    async with keepkey(**options) as (_device, endpoint):
        told = await drive(endpoint, "probe", person=person)
        assert (await fails(endpoint, "fingerprint", person=person))[0] == code
    assert told["obstacle"] == code
    assert words in (told["detail"] or "")
    assert person.asked == []


async def test_a_device_of_another_vendor_is_not_driven():
    for vendor in ("trezor.io", ""):
        async with keepkey(vendor=vendor) as (_device, endpoint):
            assert (await fails(endpoint, "fingerprint"))[0] == errors.Unsupported.code


async def test_a_pin_is_asked_for_by_its_places():
    async with keepkey(pin=PIN) as (device, endpoint):
        person = knows_pin(device)
        unlocked = await drive(endpoint, "unlock", person=person)
        assert unlocked == {"fingerprint": SEED.fingerprint.hex, "session": None}
        assert person.asked == [Question.PIN]
        assert await drive(endpoint, "fingerprint") == SEED.fingerprint.hex


async def test_a_wrong_pin_is_locked():
    async with keepkey(pin=PIN) as (device, endpoint):
        code, detail = await fails(endpoint, "unlock", person=knows_pin(device, "9999"))
    assert (code, detail) == (errors.Locked.code, "the PIN was wrong")


async def test_a_passphrase_stays_with_the_device_until_a_person_gives_another():
    """HWI starts afresh before every request, and the device forgets the passphrase each time."""
    async with keepkey(passphrase_protection=True) as (device, endpoint):
        unlocked = await drive(endpoint, "unlock", person=knows_pin(device, passphrase="swordfish"))
        assert unlocked == {"fingerprint": HIDDEN.fingerprint.hex, "session": None}
        for _worker in range(2):
            assert await drive(endpoint, "fingerprint") == HIDDEN.fingerprint.hex
        other = await drive(endpoint, "unlock", person=knows_pin(device, passphrase=""))
        assert other["fingerprint"] == SEED.fingerprint.hex


async def test_without_a_person_there_is_no_passphrase():
    async with keepkey(passphrase_protection=True) as (_device, endpoint):
        assert (await fails(endpoint, "unlock"))[0] == errors.NeedsPassphrase.code


@pytest.mark.parametrize("inputs", [1, 3])
async def test_a_vaults_transaction_is_signed(inputs):
    psbt = wallets.make_spend(VAULT, n_inputs=inputs)
    async with keepkey() as (_device, endpoint):
        person = Person()
        signed = Psbt.parse(await drive(endpoint, "sign", sign_args(psbt), person=person))
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
    assert "confirm-output" in person.steps


async def test_a_message_is_signed_and_an_address_shown():
    path = DerivationPath.parse("m/84h/1h/0h/0/0")
    async with keepkey() as (_device, endpoint):
        answer = await drive(endpoint, "sign_message", {"text": "hello", "path": str(path)})
        place = {"policy": policy_args(VAULT), "chain": 1, "index": 3}
        assert await drive(endpoint, "show_address", place) == {"address": VAULT.address(1, 3)}
        await drive(endpoint, "identify")
    assert recover_message_key("hello", base64.b64decode(answer)) == SEED.public_key(path)


@pytest.mark.parametrize("op", ["sign", "identify"])
async def test_nothing_is_approved_but_by_the_person(op):
    args = sign_args(wallets.make_spend(VAULT)) if op == "sign" else {}
    async with keepkey(refuse_all, allow_keypress=True) as (_device, endpoint):
        assert (await fails(endpoint, op, args))[0] == errors.RefusedByPerson.code


async def test_a_device_that_leaves_ends_the_waiting():
    async with keepkey(faults=Faults(vanish_at=Phase.SIGN)) as (_device, endpoint):
        code, _detail = await fails(endpoint, "sign", sign_args(wallets.make_spend(VAULT)))
    assert code == errors.Disconnected.code


async def test_a_cut_off_conversation_is_cleared():
    async with keepkey() as (_device, endpoint):
        assert await drive(endpoint, "fingerprint", recover=True) == SEED.fingerprint.hex


def test_a_trezors_messages_stay_as_they_were():
    """HWI registers KeepKey's in the table that its Trezors read by."""
    assert mapping.DEFAULT_MAPPING.type_to_class[KeepkeyFeatures.MESSAGE_WIRE_TYPE] is messages.Features


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *(
            (TrezorFailure(Failure(code=number)), errors.DeviceFault)
            for number in (1, 2, 3, 8, 9, 10, 99, 4711)
        ),
        (TrezorFailure(Failure(code=4)), errors.RefusedByPerson),
        (TrezorFailure(Failure(code=11)), errors.Uninitialised),
        *((PinException(number, "x"), errors.Locked) for number in (5, 6, 7)),
        (Cancelled(), errors.RefusedByPerson),
        (PinNeeded(), errors.Locked),
        (PassphraseNeeded(), errors.NeedsPassphrase),
        (RuntimeError("Unsupported device"), errors.Unsupported),
        (ConnectionRefusedError(111, "refused"), errors.Disconnected),
    ],
    ids=repr,
)
def test_an_exception_becomes_its_outcome(error, expected):
    assert failure(Family.KEEPKEY, error).code == expected.code


async def test_a_bridge_drives_it_in_a_worker():
    async with (
        keepkey() as (_device, endpoint),
        Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=QUICK) as bridge,
    ):
        (device,) = await bridge.refresh()
        assert (device.state, device.fingerprint) == (DeviceState.READY, SEED.fingerprint)
        await bridge.enrol(device.id, VAULT, "treasury")
        signed = await bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
        assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
