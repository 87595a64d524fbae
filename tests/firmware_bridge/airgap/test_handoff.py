"""What is accepted of an answer, and the outcome of each mistake (S19, S20, S23)."""

import tracemalloc

import pytest

from firmware_bridge.airgap import (
    BadTransfer,
    Content,
    FinalTransaction,
    NothingSigned,
    OtherTransaction,
    Transfer,
    handoff,
    take_signed,
)
from firmware_bridge.airgap.handoff import MAX_CARRIED
from firmware_bridge.airgap.transfer import MAX_BYTES
from firmware_bridge.errors import BadDeviceSignature, WrongDevice
from multisig import PsbtMismatch, TxOut, finalise, sats
from tests.support.wallets import ALICE, BOB, MALLORY, make_spend, make_vault, with_input

VAULT = make_vault()
PSBT = make_spend(VAULT)
SIGNED = ALICE.sign(PSBT)
OTHER = make_spend(VAULT, fee=2_000)


def take(answer, signer=ALICE, base=PSBT, policy=VAULT):
    return take_signed(answer, base, policy, signer.fingerprint)


@pytest.mark.parametrize(
    "answer",
    [
        SIGNED.to_bytes(),
        SIGNED.to_base64().encode(),
        SIGNED.to_base64().encode() + b"\r\n",
        SIGNED.to_bytes().hex().encode(),
        SIGNED.to_bytes().hex().upper().encode(),
        b"\xef\xbb\xbf" + SIGNED.to_base64().encode(),
        b"\n".join(SIGNED.to_base64().encode()[start : start + 76] for start in range(0, 10_000, 76)),
        Transfer(Content.PSBT, SIGNED.to_bytes()),
        Transfer(Content.BINARY, SIGNED.to_bytes()),
        Transfer(Content.TEXT, SIGNED.to_base64().encode()),
    ],
    ids=["binary", "base64", "line end", "hex", "HEX", "mark", "lines", "qr psbt", "qr bytes", "qr text"],
)
def test_every_form(answer):
    assert take(answer) == SIGNED


def test_s5_a_request_states_its_coins_as_their_previous_transactions_have_them():
    other = TxOut(sats(1), VAULT.script_pubkey(0, 0))
    with pytest.raises(PsbtMismatch, match="another coin"):
        handoff.request_bytes(with_input(PSBT, 0, witness_utxo=other), VAULT)


BOBS = BOB.sign(PSBT)
STRANGERS = MALLORY.signatures(make_spend(make_vault((ALICE, MALLORY))), 0)
BAD_BESIDE_IT = ALICE.sign(BOBS, sighash=0x03, inputs=[1])
NAME = ALICE.fingerprint.hex


@pytest.mark.parametrize(
    ("answer", "signer", "base", "error", "words"),
    [
        # No fault of the device: the person took another one.
        (BOBS, ALICE, PSBT, WrongDevice, "another cosigner"),
        (SIGNED, MALLORY, PSBT, WrongDevice, "not a cosigner"),
        (PSBT.with_signatures({0: STRANGERS}), ALICE, PSBT, BadDeviceSignature, "input 0"),
        (BOB.sign(PSBT, sighash=0x03), ALICE, PSBT, BadDeviceSignature, "input 0"),
        (BAD_BESIDE_IT, ALICE, PSBT, BadDeviceSignature, "input 1"),
        (ALICE.sign(OTHER), ALICE, PSBT, OtherTransaction, "another transaction"),
        (PSBT, ALICE, BOBS, NothingSigned, NAME),
        (BOBS, ALICE, BOBS, NothingSigned, NAME),
    ],
)
def test_s19_what_is_not_the_signers_own_signature_of_this_request(answer, signer, base, error, words):
    with pytest.raises(error, match=words):
        take(answer.to_bytes(), signer, base)


FINAL = finalise(BOB.sign(SIGNED), VAULT).serialize()


@pytest.mark.parametrize(
    "answer", [FINAL, FINAL.hex().encode() + b"\n", Transfer(Content.TRANSACTION, FINAL)]
)
def test_a_finalised_transaction_is_not_needed(answer):
    with pytest.raises(FinalTransaction, match="not needed"):
        take(answer)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "not a PSBT"),
        (b"\0" * 50, "not a PSBT"),
        (b"hello", "not a PSBT"),
        (b"\x1b[2J", "not a PSBT"),
        (b"%PDF-1.7", "not a PSBT"),
        (b"cHNidP8=", "cannot be read"),
        (b"cHNidP8B!", "base64"),
        (SIGNED.to_base64()[:-1].encode(), "base64"),
        (SIGNED.to_bytes().hex().encode()[:-1], "not valid hexadecimal"),
        (SIGNED.to_bytes()[:-1], "cannot be read"),
        (SIGNED.to_bytes() + b"\0", "cannot be read"),
        (b"psbt\xff" + bytes(MAX_BYTES), "is the most"),
        (b"psbt\xff" + bytes(MAX_CARRIED), "too large for a PSBT"),
        (b"A" * (MAX_CARRIED + 1), "too large for a PSBT"),
        (Transfer(Content.JSON, b"{}"), "not a PSBT"),
    ],
)
def test_s23_what_is_no_answer(answer, words):
    with pytest.raises(BadTransfer, match=words) as caught:
        take(answer)
    assert str(caught.value).isprintable()


def test_s23_a_psbt_that_is_too_large_is_refused_before_it_is_parsed():
    with pytest.raises(BadTransfer, match="This PSBT has 2097153 bytes"):
        handoff.decode_psbt((b"psbt\xff" + bytes(MAX_BYTES - 4)).hex().encode())
    assert handoff.decode_psbt(b"psbt\xff" + bytes(MAX_BYTES - 5))


@pytest.mark.parametrize("content", [b"0", b"A", b" ", b"\0"])
def test_s23_a_file_of_nothing_takes_little_more_memory_than_it_is_long(content):
    tracemalloc.start()
    try:
        with pytest.raises((BadTransfer, FinalTransaction)):
            handoff.decode_psbt(content * MAX_CARRIED)
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * MAX_CARRIED
