"""Whole rounds without a cable: a key comes in, a vault goes out, a request is signed, its answer is taken
back.
"""

import json

import pytest

from device_simulators.coldcard.replies import CommandRefused, TransactionRefused
from device_simulators.faults import Faults
from firmware_bridge import airgap
from firmware_bridge.airgap import CodeSeries, Content, Scanner, card, handoff, series_of, ur
from firmware_bridge.airgap.vault_files import keys_in
from firmware_bridge.errors import BadDeviceSignature, WrongDevice
from multisig import Psbt, PsbtMismatch, PsbtTooLarge, Vault, finalise, signer_progress
from tests.support.airgap import CardDevice
from tests.support.coldcard import NETWORK, SEED, VAULT
from tests.support.wallets import ALICE, BOB, CAROL, make_spend, make_vault, with_input

PSBT = make_spend(VAULT)


def enrolled(form=airgap.EnrolmentForm.COLDCARD, **options):
    device = CardDevice(**options)
    device.enrol(airgap.enrolment_file(VAULT, "Treasury", form)[1].encode())
    return device


def written(folder, psbt=PSBT, label="Rent"):
    return card.write(folder, card.request_name(label, psbt), handoff.request_bytes(psbt, VAULT))


def read(answer, psbt=PSBT, signer=SEED.fingerprint):
    return airgap.take_signed(card.read(answer, handoff.MAX_CARRIED), psbt, VAULT, signer)


def in_codes(series, psbt=PSBT, most=500):
    return series_of(handoff.request_bytes(psbt, VAULT), Content.PSBT, series, most)


def test_a_vault_of_keys_that_came_on_cards():
    device = CardDevice()
    (key,) = keys_in(json.dumps(device.export_key()), NETWORK)
    assert Vault(NETWORK, 2, (key, BOB.vault_key(), CAROL.vault_key())) == VAULT


@pytest.mark.parametrize("form", [airgap.EnrolmentForm.COLDCARD, airgap.EnrolmentForm.DESCRIPTOR])
def test_a_round_on_a_card(tmp_path, form):
    signed = read(enrolled(form).sign_file(written(tmp_path)))
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
    assert signed.without_signatures() == PSBT
    assert finalise(BOB.sign(signed), VAULT).txid == PSBT.tx.txid


def test_the_second_signer_s_answer_is_not_the_first_one_s(tmp_path):
    device = enrolled()
    by_bob = BOB.sign(PSBT)
    answer = device.sign_file(written(tmp_path, by_bob), "signed")
    assert finalise(read(answer, by_bob), VAULT)
    with pytest.raises(WrongDevice):
        read(answer, by_bob, CAROL.fingerprint)


def test_one_card_for_all_signers(tmp_path):
    device = enrolled()
    request = written(tmp_path)
    first = device.sign_file(request)
    second = request.with_name(f"{request.stem}-signed.psbt")
    second.write_bytes(BOB.sign(Psbt.parse(first.read_bytes())).to_bytes())
    with pytest.raises(WrongDevice):
        read(first, signer=BOB.fingerprint)
    both = read(second, signer=BOB.fingerprint)
    assert both == read(second)
    assert finalise(both, VAULT)


def test_a_round_of_bbqr():
    device = enrolled()
    shown = device.sign_codes(in_codes(CodeSeries.BBQR))
    scanner = Scanner()
    assert [scanner.add(text).complete for text in shown][-1]
    signed = airgap.take_signed(scanner.result, PSBT, VAULT, SEED.fingerprint)
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete


def test_a_round_of_ur():
    device = enrolled()
    assembler = ur.UrAssembler()
    # Every third picture is missed.
    seen = (text for number, text in enumerate(in_codes(CodeSeries.UR)) if number % 3)
    assert any(assembler.add(text).complete for text in seen)
    scanner = Scanner()
    for text in ur.split(device.sign_bytes(assembler.result.data), max_fragment=100):
        if scanner.add(text).complete:
            break
    signed = airgap.take_signed(scanner.result, PSBT, VAULT, SEED.fingerprint)
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete


def test_a_device_that_does_not_know_the_vault_refuses_by_itself(tmp_path):
    request = written(tmp_path)
    with pytest.raises((TransactionRefused, CommandRefused)):
        CardDevice().sign_file(request)


def test_s20_a_bad_signature_on_a_card_names_its_input(tmp_path):
    device = enrolled(faults=Faults(wrong_signatures=frozenset({1})))
    answer = device.sign_file(written(tmp_path))
    with pytest.raises(BadDeviceSignature) as caught:
        read(answer)
    assert caught.value.input_index == 1


def test_an_input_without_a_signature_is_still_missing(tmp_path):
    device = enrolled(faults=Faults(missing_signatures=frozenset({0})))
    answer = device.sign_file(written(tmp_path))
    signed = read(answer)
    assert signer_progress(signed, VAULT, SEED.fingerprint).missing == (0,)


@pytest.mark.parametrize(
    "psbt",
    [with_input(PSBT, 0, non_witness_utxo=None), make_spend(make_vault((ALICE, BOB)))],
    ids=["s5", "s3"],
)
def test_s3_s5_unproven_coins_are_not_exported(psbt):
    with pytest.raises(PsbtMismatch):
        handoff.request_bytes(psbt, VAULT)


def test_p10_a_transaction_that_no_device_takes_is_not_written(monkeypatch):
    monkeypatch.setattr(handoff, "MAX_BYTES", len(handoff.request_bytes(PSBT, VAULT)) - 1)
    with pytest.raises(PsbtTooLarge, match="no device"):
        handoff.request_bytes(PSBT, VAULT)


@pytest.mark.parametrize(("series", "most"), [(CodeSeries.BBQR, 16), (CodeSeries.UR, 1)])
def test_a_transaction_that_is_too_large_for_codes(series, most):
    with pytest.raises(airgap.TooMuchForCodes, match="too large"):
        in_codes(series, make_spend(VAULT, n_inputs=40), most)
