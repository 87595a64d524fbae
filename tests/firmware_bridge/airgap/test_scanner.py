"""One scanner for whatever a device shows."""

from itertools import islice

import pytest

from firmware_bridge.airgap import (
    Content,
    FinalTransaction,
    OtherTransfer,
    Scanner,
    Transfer,
    Unreadable,
    bbqr,
    ur,
)
from firmware_bridge.airgap.transfer import MAX_TEXT
from multisig import finalise
from tests.support.wallets import ALICE, BOB, make_spend, make_vault

VAULT = make_vault()
PSBT = make_spend(VAULT, n_inputs=1)
DATA = PSBT.to_bytes()
BBQR = bbqr.split(DATA, Content.PSBT, max_characters=300)
UR = list(islice(ur.split(DATA), 60))


@pytest.mark.parametrize(
    "texts",
    [BBQR, UR, [text.lower() for text in UR], [PSBT.to_base64()], [DATA.hex()], [DATA.hex().upper()]],
    ids=["bbqr", "ur", "ur lower", "base64", "hex", "HEX"],
)
def test_a_transfer(texts):
    scanner = Scanner()
    assert scanner.result is None
    for text in texts:
        received = scanner.add(text)
    assert received.complete
    assert scanner.result == Transfer(Content.PSBT, DATA)


@pytest.mark.parametrize("first", [BBQR, UR])
def test_other_formats_are_refused_once_one_has_begun(first):
    scanner = Scanner()
    scanner.add(first[0])
    for text in (BBQR[1] if first is UR else UR[1], PSBT.to_base64()):
        with pytest.raises(OtherTransfer, match="format"):
            scanner.add(text)
    for text in first[1:]:
        scanner.add(text)
    assert scanner.result.data == DATA


def test_a_text_that_is_refused_settles_no_format():
    scanner = Scanner()
    for text in (
        "B$HP0100x",
        "ur:crypto-psbt/1-1/xx",
        "https://example.com",
        "",
        "\0",
        "é",
        "A" * (MAX_TEXT + 1),
    ):
        with pytest.raises(Unreadable):
            scanner.add(text)
    assert scanner.result is None
    assert scanner.add(BBQR[0]).seen == 1


def test_a_second_bare_psbt():
    scanner = Scanner()
    assert scanner.add(PSBT.to_base64()) == scanner.add(DATA.hex())
    with pytest.raises(OtherTransfer):
        scanner.add(ALICE.sign(PSBT).to_base64())


def test_a_bare_transaction_is_not_needed():
    raw = finalise(BOB.sign(ALICE.sign(PSBT)), VAULT).serialize()
    with pytest.raises(FinalTransaction):
        Scanner().add(raw.hex().upper())
