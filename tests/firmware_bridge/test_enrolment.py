"""The file that tells a Coldcard about a vault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.enrolment import MAX_NAMES, coldcard_file, fingerprints_xor, fitting_name, require_name
from firmware_bridge.errors import Unsupported
from firmware_bridge.model import Family
from multisig import Network
from tests.support.wallets import ALICE, BOB, CAROL, Signer, make_vault


def test_the_file_says_all_of_the_vault():
    vault = make_vault(network=Network.TESTNET4)
    lines = coldcard_file(vault, "Savings").splitlines()
    assert lines[:3] == ["Name: Savings", "Policy: 2 of 3", "Format: P2WSH"]
    for signer, derivation, key in zip((ALICE, BOB, CAROL), lines[3::2], lines[4::2], strict=True):
        assert derivation == "Derivation: m/48'/1'/0'/2'"
        assert key == f"{signer.fingerprint.hex.upper()}: {signer.vault_key(Network.TESTNET4).xpub}"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 21,
        "Zürich",
        "a\nPolicy: 1 of 3",
        " padded ",
        "tab\there",
        "Team #one",
        "Team #",
        "Petr(main)",
    ],
)
def test_names_that_a_coldcard_does_not_take(name):
    with pytest.raises(Unsupported, match="printable ASCII"):
        coldcard_file(make_vault(), name)


def test_the_largest_vault_fits():
    signers = [Signer(str(number)) for number in range(15)]
    assert len(coldcard_file(make_vault(signers, 8), "x" * 20)) <= 4000


def test_the_quorum_is_named_by_its_fingerprints():
    vault = make_vault((ALICE, BOB))
    first, second = (int.from_bytes(bytes(signer.fingerprint), "little") for signer in (ALICE, BOB))
    assert fingerprints_xor(vault) == first ^ second


CODE = make_vault().verification_code[:4]


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("Savings", "Savings"),
        ("Zürich  reserve", "Zurich reserve"),
        ("a\nPolicy: 1 of 3", "a Policy: 1 of 3"),
        ("x" * 20, "x" * 20),
        ("Treasury of the cooperative", f"Treasury of the {CODE}"),
        ("x" * 21, f"{'x' * 15} {CODE}"),
        ("金庫", CODE),
        ("", CODE),
        (" \t ", CODE),
        ("Team #one", "Team one"),
        ("Fund #2", "Fund #2"),
        (f"{'x' * 14}#23456789", f"{'x' * 14} {CODE}"),
        ("Petr(main)", "Petr (main)"),
    ],
)
def test_a_name_is_made_to_fit_a_coldcard(name, fitting):
    assert fitting_name(Family.COLDCARD, name, make_vault()) == fitting


@given(st.text(max_size=100), st.sampled_from(sorted(MAX_NAMES)))
def test_every_name_fits_every_make(name, family):
    require_name(family, fitting_name(family, name, make_vault()))
