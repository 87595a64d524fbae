"""Messages that a vault signs (BIP-322): which devices are asked, what they show, and what they would do."""

import pytest

from firmware_bridge import BridgeError, Unsupported, conversation
from multisig import PsbtMismatch
from multisig.bip322 import build_proof
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrolled, sign_and_check

pytestmark = pytest.mark.anyio

MESSAGE = "Vault 7 on 2026-11-27, asked for by the auditors."
COINS = [payments.fund(VAULT, 40_000, index=1), payments.fund(VAULT, 70_000, index=2, chain=1)]
# Make, coins beside the address, and what its screen says.
SIGNS = (
    (makes.COLDCARD, [], ("BIP-322 Message", MESSAGE)),
    (makes.COLDCARD, COINS, ("Proof of Reserves", MESSAGE, "0.00110000", "3 inputs")),
    (makes.LEDGER, [], ("OP_RETURN", "Fees 0 ")),
)
# What it would do if it were asked: refuse, or show a payment of everything.
NOT_ASKED = ((makes.TREZOR, [], "data in a form"), (makes.LEDGER, COINS, "Fees 0.0011"))


def proof(coins):
    return build_proof(VAULT, MESSAGE, 0, 0, coins).psbt


@pytest.mark.parametrize(("make", "coins", "words"), SIGNS)
async def test_a_device_that_is_known_to_signs_a_message(make, coins, words, folder):
    rig = make.rig(folder)
    async with enrolled(rig) as (bridge, device):
        shown = Shown(rig)
        await sign_and_check(bridge, device, rig, proof(coins))
    assert all(shown.says(word) for word in words)


@pytest.mark.parametrize(("make", "coins", "end"), NOT_ASKED)
async def test_a_device_that_is_not_known_to_is_not_asked(make, coins, end, folder, monkeypatch):
    rig = make.rig(folder)
    async with enrolled(rig) as (bridge, device):
        shown = Shown(rig)
        with pytest.raises(Unsupported, match="signs no such message"):
            await bridge.sign(device.id, proof(coins), VAULT)
        assert not shown.prompts, "the person is not asked"
        monkeypatch.setattr(conversation, "why_no_proof", lambda *_args, **_named: "")
        try:
            await bridge.sign(device.id, proof(coins), VAULT)
            said = shown.text
        except BridgeError as error:
            said = error.detail or str(error)
    assert makes.bare(end) in makes.bare(said)


async def test_what_only_claims_to_be_a_message_reaches_no_device(folder):
    rig = makes.COLDCARD.rig(folder)
    whole = proof(COINS)
    inputs = whole.inputs[1:]
    tx = type(whole.tx)(0, whole.tx.inputs[1:], whole.tx.outputs, 0)
    # All of real coins as a fee, under a message.
    payment = type(whole)(tx, inputs, whole.outputs, whole.xpubs, whole.signed_message)
    async with enrolled(rig) as (bridge, device):
        shown = Shown(rig)
        with pytest.raises(PsbtMismatch, match="not the message"):
            await bridge.sign(device.id, payment, VAULT)
    assert not shown.prompts
