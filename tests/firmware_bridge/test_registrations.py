"""What is kept of a Ledger's registrations: whole, private, and never replaced by something unread."""

import json
import os
import stat

import pytest

from firmware_bridge.enrolment import (
    Registration,
    RegistrationFile,
    RegistrationsInMemory,
    UnreadableRegistrations,
)
from tests.support.wallets import ALICE, BOB, make_vault

CODE = make_vault().verification_code
FIRST = Registration(ALICE.fingerprint, CODE, "Savings", b"\x01" * 32)
SECOND = Registration(BOB.fingerprint, CODE, "Zürich", b"\x02" * 32)


@pytest.fixture(params=["memory", "file"])
def kept(request, tmp_path):
    return (
        RegistrationsInMemory()
        if request.param == "memory"
        else RegistrationFile.open(tmp_path / "kept.json")
    )


def test_what_is_kept_is_found_for_its_device_and_vault_only(kept):
    kept.keep(FIRST)
    assert kept.find(ALICE.fingerprint, CODE) == FIRST
    assert kept.find(BOB.fingerprint, CODE) is None
    assert kept.find(ALICE.fingerprint, "OTHER") is None


def test_a_later_registration_replaces_the_earlier_one(kept):
    later = Registration(ALICE.fingerprint, CODE, "Reserve", b"\x03" * 32)
    kept.keep(FIRST)
    kept.keep(later)
    assert kept.find(ALICE.fingerprint, CODE) == later
    # Somebody who still holds the earlier one does not take the later one away.
    kept.forget(FIRST)
    assert kept.find(ALICE.fingerprint, CODE) == later


def test_what_is_forgotten_is_gone(kept):
    kept.keep(FIRST)
    kept.forget(FIRST)
    kept.forget(FIRST)
    assert kept.find(ALICE.fingerprint, CODE) is None


def test_a_file_outlives_the_program(tmp_path):
    path = tmp_path / "kept.json"
    before = RegistrationFile.open(path)
    before.keep(FIRST)
    before.keep(SECOND)
    before.forget(FIRST)
    after = RegistrationFile.open(path)
    assert after.find(ALICE.fingerprint, CODE) is None
    assert after.find(BOB.fingerprint, CODE) == SECOND
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


GOOD = {"fingerprint": "00112233", "vault": CODE, "name": "Savings", "hmac": "01" * 32}


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


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(UnreadableRegistrations, match="cannot be read"):
        RegistrationFile.open(tmp_path)


def test_a_proof_of_another_length_is_none():
    with pytest.raises(ValueError, match="32 bytes"):
        Registration(ALICE.fingerprint, CODE, "Savings", b"short")
