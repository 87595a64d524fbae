"""Whole rounds without a cable: a key comes in, a vault goes out, a request is signed, its answer is taken
back.
"""

import pytest

from firmware_bridge import airgap
from firmware_bridge.airgap import CodeSeries, Content, card, handoff, series_of
from firmware_bridge.errors import WrongDevice
from multisig import Psbt, PsbtTooLarge, finalise, signer_progress
from tests.support.airgap import SEED, VAULT, CardDevice
from tests.support.wallets import BOB, make_spend

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


@pytest.mark.parametrize("form", [airgap.EnrolmentForm.COLDCARD, airgap.EnrolmentForm.DESCRIPTOR])
def test_a_round_on_a_card(tmp_path, form):
    signed = read(enrolled(form).sign_file(written(tmp_path)))
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
    assert signed.without_signatures() == PSBT
    assert finalise(BOB.sign(signed), VAULT).txid == PSBT.tx.txid


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


def test_p10_a_transaction_that_no_device_takes_is_not_written(monkeypatch):
    monkeypatch.setattr(handoff, "MAX_BYTES", len(handoff.request_bytes(PSBT, VAULT)) - 1)
    with pytest.raises(PsbtTooLarge, match="no device"):
        handoff.request_bytes(PSBT, VAULT)


@pytest.mark.parametrize(("series", "most"), [(CodeSeries.BBQR, 16), (CodeSeries.UR, 1)])
def test_a_transaction_that_is_too_large_for_codes(series, most):
    with pytest.raises(airgap.TooMuchForCodes, match="too large"):
        in_codes(series, make_spend(VAULT, n_inputs=40), most)
