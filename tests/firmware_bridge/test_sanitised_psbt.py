"""What is sent to a device and what is accepted from it, without a device."""

from dataclasses import replace

import pytest

from firmware_bridge import sanitised_psbt
from firmware_bridge.errors import BadDeviceSignature, DeviceFault
from multisig import KeyOrigin, Psbt, PsbtMismatch, profile_account_path, sats
from tests.support.wallets import ALICE, BOB, MALLORY, make_spend, make_vault, with_input, with_output

VAULT = make_vault()
PSBT = make_spend(VAULT)


def take_back(returned, signer=ALICE, base=PSBT):
    text = returned if isinstance(returned, str) else returned.to_base64()
    return sanitised_psbt.take_back(base, text, VAULT, signer.fingerprint)


# What no case of the corpus says (tests/attacks/test_handover.py).
LIES = {
    "a stranger's account key": replace(
        PSBT, xpubs=((MALLORY.vault_key().xpub, MALLORY.vault_key().origin),)
    ),
    "a final script": with_input(PSBT, 0, final_script_sig=b"\x00"),
    "more keys of ours": with_input(
        PSBT,
        0,
        derivations={
            bytes((2, *bytes(31), 1)): KeyOrigin(
                ALICE.fingerprint, profile_account_path(VAULT.network) / "0/0"
            ),
            **PSBT.inputs[0].derivations,
        },
    ),
    "no keys but one": with_input(PSBT, 0, derivations=dict(list(PSBT.inputs[0].derivations.items())[:1])),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_s9_the_device_gets_what_is_proven_and_nothing_that_was_merely_said(lie):
    sent = sanitised_psbt.for_device(lie, VAULT)
    assert sent == sanitised_psbt.for_device(PSBT, VAULT)
    assert set(Psbt.parse(sent).xpubs) == {(key.xpub, key.origin) for key in VAULT.cosigners}


def test_s15_a_profiles_transaction_brings_the_device_no_quorum():
    """A Coldcard would offer to keep it, or refuse a quorum that it is no part of."""
    profile = ALICE.profile()
    liar = replace(make_spend(profile), xpubs=tuple((key.xpub, key.origin) for key in VAULT.cosigners))
    assert Psbt.parse(sanitised_psbt.for_device(liar, profile)).xpubs == ()


def test_signatures_that_are_there_stay():
    signed = BOB.sign(PSBT)
    sent = Psbt.parse(sanitised_psbt.for_device(signed, VAULT))
    assert [item.partial_signatures for item in sent.inputs] == [
        item.partial_signatures for item in signed.inputs
    ]


def test_s5_a_coin_that_is_not_proven_goes_to_no_device():
    with pytest.raises(PsbtMismatch):
        sanitised_psbt.for_device(with_input(PSBT, 0, non_witness_utxo=None), VAULT)


def test_s19_only_signatures_are_taken():
    returned = with_input(ALICE.sign(PSBT), 0, witness_utxo=None)
    taken = take_back(replace(returned, xpubs=()))
    assert taken.without_signatures() == PSBT
    assert taken == ALICE.sign(PSBT)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (ALICE.sign(PSBT, sighash=0x03, inputs=[1]), BadDeviceSignature, "input 1"),
        (BOB.sign(PSBT, inputs=[0]), BadDeviceSignature, "input 0"),
        (with_output(ALICE.sign(PSBT), 0, amount=sats(49_999)), DeviceFault, "another transaction"),
        *((text, DeviceFault, "no PSBT") for text in ("", "cHNidP8=", "no base64 at all", "A" * 100)),
    ],
)
def test_s19_s23_what_is_no_answer(answer, error, words):
    with pytest.raises(error, match=words):
        take_back(answer)
