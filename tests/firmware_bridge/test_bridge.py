"""The bridge's checks of a device's answers, with a scripted worker."""

import asyncio
import base64
import hashlib

import pytest

from firmware_bridge import calls
from firmware_bridge.bridge import Bridge
from firmware_bridge.errors import BadDeviceSignature, Cancelled, DeviceFault, WrongApp
from firmware_bridge.model import DeviceState, Sighting
from multisig import DerivationPath, Network, WrongNetwork, message_hash, secp256k1
from tests.conformance.rigs import ACCOUNT, NETWORK, SEEDS
from tests.support import wallets
from tests.support.scripted import COLDCARD, ENDPOINT, SPEND, VAULT, Script, bridge_answering, who
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio

PATH = VAULT.cosigners[0].origin.path / "0/0"


async def test_a_signed_message_must_be_by_the_key_that_was_asked():
    """Well formed, by an unknown key: any such signature recovers to some key."""
    key = ALICE.origin_key(PATH).xpub
    answer = {"fingerprint": str(ALICE.fingerprint), "xpubs": [str(key)]}
    digest = hashlib.sha256(b"x").digest()
    signature, recovery_id = secp256k1.sign_recoverable(BOB.private_node(PATH).key, digest)
    by_bob = base64.b64encode(bytes((31 + recovery_id,)) + signature).decode()
    bridge, device, _script = await bridge_answering(("xpubs", answer), ("sign_message", by_bob))
    with pytest.raises(BadDeviceSignature):
        await bridge.sign_message(device, "hello", PATH)


class Cancelling(Script):
    """Cancels the operation while its first call is under way, whose answer arrives first."""

    def __init__(self, bridge, device, *answers):
        super().__init__(*answers)
        self.bridge, self.device = bridge, device

    async def __call__(self, op, args=None, **options):
        await self.bridge.cancel(self.device)
        return await super().__call__(op, args, **options)


def keys_of(signer):
    return "xpubs", {"fingerprint": str(signer.fingerprint), "xpubs": [str(signer.origin_key(PATH).xpub)]}


OPERATIONS = {
    "sign": (who(ALICE), lambda bridge, device: bridge.sign(device, SPEND, VAULT)),
    "enrol": (who(ALICE), lambda bridge, device: bridge.enrol(device, VAULT, "Savings")),
    "sign_message": (keys_of(ALICE), lambda bridge, device: bridge.sign_message(device, "hello", PATH)),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_cancel_during_the_first_look_is_not_lost(name):
    """The person must not be asked for what was given up: the script has an answer to the first look, and no
    more.
    """
    first, operate = OPERATIONS[name]
    bridge, device, _script = await bridge_answering(endpoint=COLDCARD)
    (record,) = bridge._roster.records.values()
    record.lane.call = Cancelling(bridge, device, first)
    with pytest.raises(Cancelled):
        await operate(bridge, device)
    # Nothing was sent: there is no answer to come back for.
    assert record.unanswered is None
    # A cancel belongs to one operation: the next one is asked again.
    record.lane.call = script = Script(keys_of(ALICE))
    await bridge.xpub(device, PATH)
    assert script.answers == []


@pytest.mark.parametrize("end", ["cancel", "leave"])
async def test_a_cancel_while_the_operation_waits_for_a_probe_is_not_lost(end):
    bridge, device, _script = await bridge_answering()
    (record,) = bridge._roster.records.values()
    async with record.lane.lock:
        signing = asyncio.create_task(bridge.sign(device, SPEND, VAULT))
        await asyncio.sleep(0)
        assert record.in_use
        await (bridge.cancel(device) if end == "cancel" else bridge.__aexit__(None, None, None))
    with pytest.raises(Cancelled):
        await signing


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"fingerprint": "00112233"},
        {"fingerprint": None, "xpubs": ["x"]},
        {"fingerprint": "00112233", "xpubs": []},
        {"fingerprint": "00112233", "xpubs": ["x", "y"]},
        {"fingerprint": "00112233", "xpubs": 5},
        {"fingerprint": "00112233", "xpubs": "x"},
    ],
)
async def test_an_answer_that_is_no_keys_is_a_fault_of_the_device(answer):
    bridge, device, _script = await bridge_answering(("xpubs", answer))
    with pytest.raises(DeviceFault):
        await bridge.xpub(device, PATH)


WELL = {"model": "One", "label": "Mine", "fingerprint": "00112233", "obstacle": None}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        *({**WELL, name: 5} for name in WELL),
        {**WELL, "fingerprint": "xyz"},
        {**WELL, "obstacle": []},
        {**WELL, "detail": 5},
        {**WELL, "firmware": 5},
    ],
)
async def test_a_probe_that_is_answered_with_nonsense_finds_no_working_device(answer):
    bridge, _device, _script = await bridge_answering(("probe", answer))
    (device,) = await bridge.refresh()
    assert (device.state, device.fingerprint, device.label) == (DeviceState.PRESENT, None, None)
    assert device.detail.startswith(DeviceFault.sentence[:10])


async def no_answer(_question):
    return None


async def test_what_unlocks_a_device_is_remembered_until_it_leaves():
    there = [Sighting(ENDPOINT, "A device")]

    async def listing(_in_use):
        return list(there)

    bridge = Bridge(network=Network.REGTEST, listings=[listing])
    await bridge._roster.look()
    (record,) = bridge._roster.records.values()
    record.lane.call = Script(("unlock", {"fingerprint": str(BOB.fingerprint), "session": "00ff"}))
    device = await bridge.unlock(record.device.id, no_answer)
    assert (device.state, device.fingerprint) == (DeviceState.READY, BOB.fingerprint)
    assert record.lane.session == "00ff"
    there.clear()
    await bridge._roster.look()
    assert record.lane.session is None


async def test_a_device_that_shows_test_coins_is_not_asked_about_real_ones():
    """A signature is good on every network; what a person has seen on the screen is not."""
    vault = wallets.make_vault(network=Network.MAINNET)
    bridge, device, _script = await bridge_answering()
    with pytest.raises(WrongNetwork):
        await bridge.sign(device, wallets.make_spend(vault), vault)
    with pytest.raises(WrongNetwork):
        await bridge.show_address(device, vault, 0, 0)
    with pytest.raises(WrongNetwork):
        await bridge.enrol(device, vault, "Savings")


# --- what a worker may answer


SEED, MASTER = SEEDS[0], SEEDS[0].fingerprint
XPUB = str(SEED.xpub(ACCOUNT, NETWORK))
NO_KEYS = ("", None, 7, XPUB[:-1], XPUB[:-1] + "1", "tpub")


@pytest.mark.parametrize(
    ("read", "args", "error"),
    [
        *((calls.origin_key, (MASTER, ACCOUNT, text, NETWORK), DeviceFault) for text in NO_KEYS),
        (calls.origin_key, (MASTER, DerivationPath.parse("m/84h/1h/0h"), XPUB, NETWORK), DeviceFault),
        (calls.origin_key, (MASTER, ACCOUNT, XPUB, Network.MAINNET), WrongApp),
        *((calls.fingerprint, (text,), DeviceFault) for text in ("", None, "xyz", "1234567", "123456789a")),
        *((calls.signature, (text,), DeviceFault) for text in ("a", "ü", "?")),
    ],
)
def test_s14_s15_what_is_no_key_fingerprint_or_signature(read, args, error):
    with pytest.raises(error):
        read(*args)


def test_a_message_signature_is_held_against_the_key():
    path = ACCOUNT / "0/0"
    signed = SEED.sign_recoverable(path, message_hash("hello"))
    assert calls.signature(base64.b64encode(signed).decode()) == signed
    assert calls.is_by(SEED.public_key(path), "hello", signed)
    assert not calls.is_by(SEED.public_key(path), "hullo", signed)
    assert not calls.is_by(SEED.public_key(ACCOUNT / "0/1"), "hello", signed)
    assert not calls.is_by(SEED.public_key(path), "hello", signed[:-1])
