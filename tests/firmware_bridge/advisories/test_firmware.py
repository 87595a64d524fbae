"""How much of a data output each model shows, only as far as it was read in source or seen."""

import pytest

from firmware_bridge import Family, data_screen
from firmware_bridge.makers import may_sign_proof, why_no_proof


@pytest.mark.parametrize(
    ("family", "model", "firmware", "known"),
    [
        (Family.TREZOR, "Trezor One", "1.14.1", (32, 31)),
        (Family.TREZOR, "Trezor Model T", "2.3.6", (44, 43)),
        (Family.TREZOR, "Trezor Model T", "2.8.9", (80, 0)),
        (Family.COLDCARD, "Coldcard Mk4", "5.4.5", (160, 80)),
        # What was neither read nor seen is not known.
        (Family.TREZOR, "Trezor One", None, None),
        (Family.TREZOR, "Trezor One", "1.15.0", None),
        (Family.TREZOR, "Trezor Safe 3", "2.8.9", None),
        (Family.COLDCARD, "Coldcard Mk4", "5.3.3", None),
        (Family.LEDGER, "Trezor One", "1.14.1", None),
    ],
)
def test_s28_what_is_known_of_a_model_and_version(family, model, firmware, known):
    found = data_screen(family, model, firmware)
    assert (None if found is None else (found.whole, found.first)) == known


@pytest.mark.parametrize(
    ("family", "model", "firmware", "address", "coins"),
    [
        (Family.COLDCARD, "Coldcard Mk4", "5.6.1", True, True),
        (Family.COLDCARD, "Coldcard Mk4", "5.6.2", False, False),
        (Family.LEDGER, "Ledger Nano S Plus", "2.4.6", True, False),
        (Family.JADE, "Jade", "1.0.31", False, False),
        (Family.COLDCARD, "Coldcard Mk4", None, False, False),
    ],
)
def test_p95_only_what_is_known_to_sign_a_message_is_asked(family, model, firmware, address, coins):
    assert (why_no_proof(family, model, firmware, coins=0) == "") is address
    assert (why_no_proof(family, model, firmware, coins=2) == "") is coins
    for number in (0, 2):
        may = may_sign_proof(family, model, firmware, coins=number)
        assert may or why_no_proof(family, model, firmware, coins=number)


def test_p95_a_device_may_have_newer_firmware_than_when_it_was_registered():
    assert may_sign_proof(Family.COLDCARD, "Coldcard Mk4", "5.4.5", coins=2)
    assert may_sign_proof(Family.COLDCARD, "Coldcard Mk4", None, coins=2)
    assert not may_sign_proof(Family.COLDCARD, "Coldcard Mk4", "5.6.2", coins=0)
    assert not may_sign_proof(Family.TREZOR, "Trezor One", "1.14.1", coins=0)
