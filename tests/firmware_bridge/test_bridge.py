"""What the bridge checks of a device's answers, with a worker that answers from a list: no device would do all this."""

import base64
import hashlib

import pytest
from coincurve import PrivateKey

from firmware_bridge.bridge import Bridge
from firmware_bridge.errors import BadDeviceSignature, DeviceFault, WrongDevice
from firmware_bridge.model import Endpoint
from firmware_bridge.presence import Sighting
from multisig import Network, signer_progress
from tests.support import wallets
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio

ENDPOINT = Endpoint.parse("trezor:webusb:001:2")
VAULT = wallets.make_vault()
SPEND = wallets.make_spend(VAULT)
SIGNED = ALICE.sign(SPEND).to_base64()
PATH = VAULT.cosigners[0].origin.path / "0/0"


class Script:
    """Stands for the worker of one device: (operation, answer), in this order and no other."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def __call__(self, op, _args=None, **_options):
        expected, answer = self.answers.pop(0)
        assert op == expected
        return answer


async def bridge_answering(*answers):
    async def listing(_in_use):
        return [Sighting(ENDPOINT, "Trezor")]

    bridge = Bridge(network=Network.REGTEST, listings=[listing])
    await bridge._roster.look()
    (record,) = bridge._roster.records()
    record.lane.call = script = Script(*answers)
    return bridge, record.device.id, script


def who(signer):
    return "fingerprint", str(signer.fingerprint)


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


async def test_a_signed_message_must_be_by_the_key_that_was_asked():
    """Well formed, and by somebody: any such signature recovers to some key."""
    key = ALICE.origin_key(PATH).xpub
    answer = {"fingerprint": str(ALICE.fingerprint), "xpubs": [str(key)]}
    private = PrivateKey(BOB.private_node(PATH).key)
    recoverable = private.sign_recoverable(hashlib.sha256(b"x").digest(), hasher=None)
    signature = bytes((31 + recoverable[64],)) + recoverable[:64]
    bridge, device, _script = await bridge_answering(
        ("xpubs", answer), ("sign_message", base64.b64encode(signature).decode())
    )
    with pytest.raises(BadDeviceSignature):
        await bridge.sign_message(device, "hello", PATH)
