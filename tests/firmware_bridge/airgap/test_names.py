"""Names that FAT takes, and those that a Coldcard makes of them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.airgap.card import MAX_LABEL, answers_among, request_name, safe_label
from tests.support.wallets import make_spend, make_vault

PSBT = make_spend(make_vault())


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Rent", "Rent"),
        ("Miete März / Q1", "Miete-Marz-Q1"),
        ("", "vault"),
        ("***", "vault"),
        ("日本", "vault"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\0b\nc\x1b[2Jd", "a-b-c-2Jd"),
        ("C:\\Users", "C-Users"),
        ("con", "con-vault"),
        ("LPT1", "LPT1-vault"),
        ("-.-x-.-", "x"),
        ("ﬃ" * 100, "ffi" * 8),
    ],
)
def test_labels(label, name):
    assert safe_label(label) == name


@given(st.text(max_size=200))
def test_any_label_is_a_name_that_fat_and_every_system_take(label):
    name = safe_label(label)
    assert re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", name)
    assert len(name) <= MAX_LABEL
    # What FAT holds in a long name at most is 255; with the id and the longest ending it stays far below.
    assert len(request_name(label, PSBT)) < 40


def test_a_transaction_has_its_own_name():
    other = make_spend(make_vault(), fee=2_000)
    assert request_name("Rent", PSBT) == f"Rent-{PSBT.tx.txid[:8]}.psbt"
    assert request_name("Rent", PSBT) != request_name("Rent", other)


def test_answers():
    there = [
        "rent-1a2b.psbt",
        "rent-1a2b-part.psbt",
        "RENT-1A2B-PART-10.PSBT",
        "rent-1a2b-part-2.psbt",
        "rent-1a2b-signed.psbt",
        "rent-1a2b-final.txn",
        "rent-1a2b-part.psbt.bak",
        ".rent-1a2b-part.psbt",
        "rent-1a2bx-part.psbt",
        "rent.1a2b-part.psbt",
        "rent-1a2b-part-99999.psbt",
    ]
    assert answers_among(there, "rent-1a2b.psbt") == (
        "rent-1a2b-signed.psbt",
        "RENT-1A2B-PART-10.PSBT",
        "rent-1a2b-part-2.psbt",
        "rent-1a2b-part.psbt",
    )


def test_a_coldcard_takes_part_out_of_the_name():
    assert answers_among(["a-b-1f-part.psbt", "a-part-b-1f-signed.psbt"], "a-part-b-1f.psbt") == (
        "a-part-b-1f-signed.psbt",
        "a-b-1f-part.psbt",
    )


def test_a_name_is_no_pattern():
    assert answers_among(["rentx-part.psbt"], "rent..psbt") == ()
