"""Whole rounds without a cable: a key comes in, a vault goes out, a request is signed, its answer is taken
back.
"""

import json
from itertools import islice

import pytest

from device_simulators.coldcard.replies import CommandRefused, TransactionRefused
from device_simulators.faults import Faults
from firmware_bridge import airgap
from firmware_bridge.airgap import Form, Scanner, handoff, ur
from firmware_bridge.errors import BadDeviceSignature, WrongDevice
from multisig import Psbt, PsbtMismatch, PsbtTooLarge, Vault, finalise, signer_progress
from tests.support.airgap import CardDevice
from tests.support.coldcard import NETWORK, SEED, VAULT
from tests.support.wallets import ALICE, BOB, CAROL, make_spend, make_vault, with_input

PSBT = make_spend(VAULT)


def enrolled(tmp_path, form=airgap.EnrolmentForm.COLDCARD, **options):
    device = CardDevice(**options)
    device.enrol(airgap.write_enrolment(VAULT, "Treasury", tmp_path, form).read_bytes())
    return device


def test_a_vault_of_keys_that_came_on_cards(tmp_path):
    device = CardDevice()
    export = tmp_path / "ccxp-73C5DA0A.json"
    export.write_text(json.dumps(device.export_key()))
    key = airgap.read_key(export, NETWORK, signer=SEED.fingerprint)
    assert Vault(NETWORK, 2, (key, BOB.vault_key(), CAROL.vault_key())) == VAULT


@pytest.mark.parametrize("form", [airgap.EnrolmentForm.COLDCARD, airgap.EnrolmentForm.DESCRIPTOR])
@pytest.mark.parametrize("psbt_form", Form)
def test_a_round_on_a_card(tmp_path, form, psbt_form):
    device = enrolled(tmp_path, form)
    request = airgap.write_psbt(PSBT, VAULT, tmp_path, label="Rent", form=psbt_form)
    device.sign_file(request)
    (answer,) = airgap.find_answers(request)
    signed = airgap.read_signed(answer, PSBT, VAULT, SEED.fingerprint)
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
    assert signed.without_signatures() == PSBT
    assert finalise(BOB.sign(signed), VAULT).txid == PSBT.tx.txid


def test_the_second_signer_s_answer_is_not_the_first_one_s(tmp_path):
    device = enrolled(tmp_path)
    by_bob = BOB.sign(PSBT)
    request = airgap.write_psbt(by_bob, VAULT, tmp_path)
    answer = device.sign_file(request, "signed")
    assert finalise(airgap.read_signed(answer, by_bob, VAULT, SEED.fingerprint), VAULT)
    with pytest.raises(WrongDevice):
        airgap.read_signed(answer, by_bob, VAULT, CAROL.fingerprint)


def test_one_card_for_all_signers(tmp_path):
    device = enrolled(tmp_path)
    request = airgap.write_psbt(PSBT, VAULT, tmp_path, label="Rent")
    first = device.sign_file(request)
    second = request.with_name(f"{request.stem}-signed.psbt")
    second.write_bytes(BOB.sign(Psbt.parse(first.read_bytes())).to_bytes())
    assert airgap.find_answers(request) == (second, first)
    with pytest.raises(WrongDevice):
        airgap.read_signed(first, PSBT, VAULT, BOB.fingerprint)
    both = airgap.read_signed(second, PSBT, VAULT, BOB.fingerprint)
    assert both == airgap.read_signed(second, PSBT, VAULT, SEED.fingerprint)
    assert finalise(both, VAULT)


def test_the_latest_answer_comes_first(tmp_path):
    device = enrolled(tmp_path)
    request = airgap.write_psbt(PSBT, VAULT, tmp_path, label="half-part-two")
    made = [device.sign_file(request), device.sign_file(request), device.sign_file(request, "signed")]
    assert airgap.find_answers(request) == tuple(reversed(made))


def test_a_round_of_bbqr(tmp_path):
    device = enrolled(tmp_path)
    shown = device.sign_codes(airgap.psbt_bbqr(PSBT, VAULT, max_characters=500))
    scanner = Scanner()
    assert [scanner.add(text).complete for text in shown][-1]
    signed = airgap.take_signed(scanner.result, PSBT, VAULT, SEED.fingerprint)
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete


def test_a_round_of_ur(tmp_path):
    device = enrolled(tmp_path)
    assembler = ur.Assembler()
    # Every third picture is missed.
    seen = (text for number, text in enumerate(airgap.psbt_ur(PSBT, VAULT)) if number % 3)
    assert any(assembler.add(text).complete for text in islice(seen, 200))
    scanner = Scanner()
    for text in ur.split(device.sign_bytes(assembler.result.data), max_fragment=100):
        if scanner.add(text).complete:
            break
    signed = airgap.take_signed(scanner.result, PSBT, VAULT, SEED.fingerprint)
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete


def test_a_device_that_does_not_know_the_vault_refuses_by_itself(tmp_path):
    request = airgap.write_psbt(PSBT, VAULT, tmp_path)
    with pytest.raises((TransactionRefused, CommandRefused)):
        CardDevice().sign_file(request)


def test_s20_a_bad_signature_on_a_card_names_its_input(tmp_path):
    device = enrolled(tmp_path, faults=Faults(wrong_signatures=frozenset({1})))
    answer = device.sign_file(airgap.write_psbt(PSBT, VAULT, tmp_path))
    with pytest.raises(BadDeviceSignature) as caught:
        airgap.read_signed(answer, PSBT, VAULT, SEED.fingerprint)
    assert caught.value.input_index == 1


def test_an_input_without_a_signature_is_still_missing(tmp_path):
    device = enrolled(tmp_path, faults=Faults(missing_signatures=frozenset({0})))
    answer = device.sign_file(airgap.write_psbt(PSBT, VAULT, tmp_path))
    signed = airgap.read_signed(answer, PSBT, VAULT, SEED.fingerprint)
    assert signer_progress(signed, VAULT, SEED.fingerprint).missing == (0,)


@pytest.mark.parametrize(
    "psbt",
    [with_input(PSBT, 0, non_witness_utxo=None), make_spend(make_vault((ALICE, BOB)))],
    ids=["s5", "s3"],
)
@pytest.mark.parametrize("way", [airgap.psbt_bbqr, airgap.psbt_ur, "card"])
def test_s3_s5_unproven_coins_are_not_exported(tmp_path, psbt, way):
    with pytest.raises(PsbtMismatch):
        airgap.write_psbt(psbt, VAULT, tmp_path) if way == "card" else way(psbt, VAULT)
    assert not list(tmp_path.iterdir())


def test_p10_a_transaction_that_no_device_takes_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(handoff, "MAX_BYTES", len(handoff.request_bytes(PSBT, VAULT)) - 1)
    with pytest.raises(PsbtTooLarge, match="no device"):
        airgap.write_psbt(PSBT, VAULT, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("way", [airgap.psbt_bbqr, airgap.psbt_ur])
def test_a_transaction_that_is_too_large_for_codes(way):
    size = {"max_characters": 16} if way is airgap.psbt_bbqr else {"max_fragment": 1}
    with pytest.raises(airgap.TooMuchForCodes, match="too large"):
        way(make_spend(VAULT, n_inputs=40), VAULT, **size)
