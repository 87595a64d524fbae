"""What a device is told about a vault, and the store of a Ledger's registrations."""

import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.enrolment import (
    Registration,
    RegistrationFile,
    RegistrationsInMemory,
    UnreadableRegistrations,
    fitting_name,
    require_name,
)
from firmware_bridge.errors import Unsupported
from firmware_bridge.model import Family
from tests.support.wallets import ALICE, BOB, make_vault


@pytest.mark.parametrize(
    "name",
    ["", "x" * 21, "Zürich", "a\nPolicy: 1 of 3", " padded ", "tab\there", "Team #one", "Team #",
     "Petr(main)"],
)  # fmt: skip
def test_names_that_a_coldcard_does_not_take(name):
    with pytest.raises(Unsupported, match="printable ASCII"):
        require_name(Family.COLDCARD, name)


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
        ("A/B: 50%. Really", "A/B: 50%. Really"),
    ],
)
def test_a_name_is_made_to_fit_a_coldcard(name, fitting):
    assert fitting_name(Family.COLDCARD, name, make_vault()) == fitting


@given(st.text(max_size=100), st.sampled_from(sorted(Family)))
def test_every_name_fits_every_make(name, family):
    require_name(family, fitting_name(family, name, make_vault()))


VERIFICATION_CODE = make_vault().verification_code
FIRST = Registration(ALICE.fingerprint, VERIFICATION_CODE, "Savings", b"\x01" * 32)
SECOND = Registration(BOB.fingerprint, VERIFICATION_CODE, "Zürich", b"\x02" * 32)


@pytest.fixture(params=["memory", "file"])
def kept(request, tmp_path):
    return (
        RegistrationsInMemory()
        if request.param == "memory"
        else RegistrationFile.open(tmp_path / "kept.json")
    )


def test_what_is_kept_is_found_for_its_device_and_vault_only(kept):
    kept.keep(FIRST)
    assert kept.find(ALICE.fingerprint, VERIFICATION_CODE) == FIRST
    assert kept.find(BOB.fingerprint, VERIFICATION_CODE) is None
    assert kept.find(ALICE.fingerprint, "OTHER") is None


def test_a_file_outlives_the_program(tmp_path):
    path = tmp_path / "kept.json"
    before = RegistrationFile.open(path)
    before.keep(FIRST)
    before.keep(SECOND)
    before.forget(FIRST)
    after = RegistrationFile.open(path)
    assert after.find(ALICE.fingerprint, VERIFICATION_CODE) is None
    assert after.find(BOB.fingerprint, VERIFICATION_CODE) == SECOND
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the mode says nothing about who may read")
def test_others_may_not_read_it(tmp_path):
    path = tmp_path / "kept.json"
    RegistrationFile.open(path).keep(FIRST)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "kept.json"
    kept = RegistrationFile.open(path)
    kept.keep(FIRST)
    before = path.read_bytes()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("firmware_bridge.enrolment.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        kept.keep(SECOND)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]


GOOD = {"fingerprint": "00112233", "vault": VERIFICATION_CODE, "name": "Savings", "hmac": "01" * 32}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"version": 2, "registrations": []}',
        '{"version": 1, "registrations": {}}',
        '{"version": 1, "registrations": ["x"]}',
        *(
            json.dumps({"version": 1, "registrations": [{**GOOD, **wrong}]})
            for wrong in (
                {"hmac": "01"},
                {"hmac": "zz" * 32},
                {"fingerprint": "xyz"},
                {"hmac": 5},
                {"name": None},
                {"fingerprint": 5},
            )
        ),
        json.dumps({"version": 1, "registrations": [{"fingerprint": "00112233"}]}),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "kept.json"
    path.write_text(content)
    with pytest.raises(UnreadableRegistrations, match="holds no registrations"):
        RegistrationFile.open(path)
    assert path.read_text() == content
