"""Known flaws of firmware (S22), which lists are accepted, and which firmware proves its nonces (S20)."""

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard import firmware as coldcard
from firmware_bridge import Device, Endpoint, Family
from firmware_bridge.advisories import (
    Advisories,
    BadListSignature,
    MalformedList,
    OlderList,
    Severity,
    firmware_known,
    has_anti_exfil,
    known_flaws,
    lists,
    load_list,
)
from firmware_bridge.advisories.lists import MAX_BYTES, MAX_SERIAL, Version, packaged, parse_list
from tests.conformance import makes
from tests.conformance.rigs import bridged, short_folder

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
PACKAGED_FILE = Path(lists.__file__).with_name(lists.PACKAGED)
NO_LIST = Advisories(1, ())


def device(family: str, firmware: str | None, model: str = "Any model") -> Device:
    endpoint = Endpoint(Family(family), "udp:127.0.0.1:1")
    return replace(Device.at(endpoint, model), firmware=firmware)


def ids(family: str, firmware: str | None) -> set[str]:
    return {flaw.id for flaw in known_flaws(device(family, firmware))}


def entry(**changes: str) -> str:
    fields = {
        "id": '"TEST-1"',
        "family": '"trezor"',
        "models": "[]",
        "severity": '"warn"',
        "text": '"It is flawed."',
        "advice": '"Update it."',
        "sources": '["https://example.com/flaw"]',
        "affected": '[{ line = "", below = "2.0.0" }]',
    }
    return "[[advisory]]\n" + "".join(
        f"{key} = {value}\n" for key, value in (fields | changes).items() if value
    )


def listing(*entries: str, serial: str = "7", top: str = "") -> bytes:
    return f"format = 1\nserial = {serial}\n{top}\n{''.join(entries) or entry()}".encode()


def loaded(data: bytes, held: Advisories | None = None) -> Advisories:
    return load_list(data, KEY.sign(data), PUBLIC, held)


# --- the list that comes with the package
# ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "firmware", "flaw", "mended"),
    [
        ("coldcard", "5.4.5", "COLDCARD-2026-07-ENTROPY", "5.6.0"),
        ("coldcard", "4.1.9", "COLDCARD-2026-07-ENTROPY", "4.2.0"),
        ("coldcard", "4.0.0", "COLDCARD-2026-07-ENTROPY", "3.2.2"),
        ("coldcard", "1.4.1Q", "COLDCARD-2026-07-ENTROPY", "1.5.0Q"),
        ("coldcard", "6.5.0X", "COLDCARD-2026-07-ENTROPY", "6.6.0X"),
        ("coldcard", "6.5.0QX", "COLDCARD-2026-07-ENTROPY", "6.6.0QX"),
        ("coldcard", "5.6.0", "COLDCARD-2026-08-STAGED-PSBT", "5.6.1"),
        ("coldcard", "1.5.0Q", "COLDCARD-2026-08-STAGED-PSBT", "1.5.1Q"),
        ("coldcard", "5.0.5", "COLDCARD-5.0.6-VIRTUAL-DISK", "5.0.6"),
        ("coldcard", "3.2.0", "COLDCARD-3.2.1-FOREIGN-VAULT", "3.2.1"),
        ("coldcard", "3.1.3", "CVE-2020-14199-COLDCARD", "3.1.4"),
        ("coldcard", "3.0.5", "COLDCARD-3.0.6-MULTISIG", "3.0.6"),
        ("trezor", "1.9.0", "CVE-2020-14199-TREZOR", "1.9.1"),
        ("trezor", "2.3.0", "CVE-2020-14199-TREZOR", "2.3.1"),
        ("trezor", "2.9.9", "CVE-2025-69893", "2.10.0"),
        ("trezor", "1.14.0", "CVE-2025-69893", "1.14.1"),
        ("trezor", "2.5.0", "TREZOR-2.5.1-REPLACEMENT", "2.5.1"),
        ("trezor", "2.10.9", "TREZOR-2.11.0-MULTISIG", "2.11.0"),
        ("trezor", "2.12.1", "TREZOR-2.12.2-EXTERNAL-INPUTS", "2.12.2"),
        ("ledger", "2.1.1", "CVE-2023-7346", "2.1.2"),
        ("ledger", "2.1.0", "CVE-2023-7346", "2.0.6"),
        ("ledger", "1.4.5", "LEDGER-1.4.6-ISOLATION", "1.4.6"),
        ("bitbox02", "9.14.1", "BITBOX02-9.15.0-FEE", "9.15.0"),
        ("jade", "1.0.37", "JADE-1.0.38", "1.0.38"),
        ("jade", "1.0.40", "JADE-1.0.41", "1.0.41"),
    ],
)
def test_s22_a_flaw_is_told_of_the_versions_that_have_it_and_of_no_other(family, firmware, flaw, mended):
    assert flaw in ids(family, firmware)
    assert flaw not in ids(family, mended)


@pytest.mark.parametrize(
    ("family", "firmware"),
    [
        ("trezor", "2.12.4"),
        ("trezor", "1.14.1"),
        ("ledger", "2.4.6"),
        ("bitbox02", "9.26.5"),
    ],
)
def test_nothing_is_said_of_firmware_without_a_known_flaw(family, firmware):
    assert ids(family, firmware) == set()


def test_s22_a_mended_coldcard_may_still_hold_a_seed_that_can_be_guessed():
    for firmware in ("4.2.0", "5.6.1", "1.5.1Q", "6.6.0X", "6.6.0QX"):
        assert ids("coldcard", firmware) == {"COLDCARD-2026-07-OLD-SEED"}
    assert ids("coldcard", "3.2.2") == set()


def test_the_worst_comes_first():
    flaws = known_flaws(device("coldcard", "5.0.5"))
    assert [flaw.severity for flaw in flaws] == [Severity.STOP_USING, Severity.STOP_USING, Severity.WARN]


def test_a_list_given_is_asked_instead_of_the_packaged_one():
    assert known_flaws(device("coldcard", "5.0.5"), NO_LIST) == ()


@pytest.mark.parametrize(
    "firmware", [None, "", "5", "?.??", "5.6.1-dirty", "5.6.1W", "1.0.31-28-g37ba7", "٥.٦.١", "5.6.1\n"]
)
def test_s22_an_unknown_version_is_said_to_be_unknown(firmware):
    unknown = device("coldcard", firmware)
    assert known_flaws(unknown) == ()
    assert not firmware_known(unknown)
    assert firmware_known(device("coldcard", "5.6.1"))


def test_the_packaged_list_leaves_room_and_says_where_each_entry_comes_from():
    assert packaged() == parse_list(PACKAGED_FILE.read_bytes())
    assert len(PACKAGED_FILE.read_bytes()) * 5 < MAX_BYTES
    assert all(flaw.sources for flaw in packaged().entries)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("make", "firmware", "flaws"),
    [
        (makes.TREZOR, "1.14.1", []),
        (makes.COLDCARD, "5.6.1", ["COLDCARD-2026-07-OLD-SEED"]),
        (makes.COLDCARD, "5.4.5", ["COLDCARD-2026-07-ENTROPY", "COLDCARD-2026-08-STAGED-PSBT"]),
        (makes.LEDGER, "2.4.6", []),
    ],
)
async def test_s22_what_a_device_tells_over_its_wire_is_looked_up(make, firmware, flaws, monkeypatch):
    monkeypatch.setattr(coldcard, "RELEASE", ("2025-11-03", firmware, "3.2.1", "20251103152700"))
    with short_folder() as folder:
        async with bridged(make.rig(Path(folder))) as (_bridge, [found]):
            assert found.firmware == firmware
            assert firmware_known(found)
            assert [flaw.id for flaw in known_flaws(found)] == flaws


# --- versions
# -------------------------------------------------------------------------------------------------------


@given(*[st.tuples(*[st.integers(0, 99)] * 3)] * 2)
def test_versions_are_compared_as_numbers(one, other):
    first, second = (Version.parse(Family.TREZOR, ".".join(map(str, each))) for each in (one, other))
    assert first is not None
    assert second is not None
    assert (first.numbers < second.numbers) == (one < other)


def test_a_missing_part_is_zero_and_lines_are_kept_apart():
    assert Version.parse(Family.TREZOR, "2.5") == Version.parse(Family.TREZOR, "2.5.0.0")
    assert Version.parse(Family.COLDCARD, "1.5.0Q") != Version.parse(Family.COLDCARD, "1.5.0")
    assert Version.parse(Family.TREZOR, "1.5.0Q") is None


def test_an_entry_may_name_models_by_the_beginning_of_their_names():
    listed = parse_list(listing(entry(models='["Trezor Safe"]')))
    assert known_flaws(device("trezor", "1.0.0", "Trezor Safe 3"), listed)
    assert not known_flaws(device("trezor", "1.0.0", "Trezor One"), listed)
    assert not known_flaws(device("ledger", "1.0.0", "Trezor Safe 3"), listed)


# --- lists from outside
# ---------------------------------------------------------------------------------------------


def test_s22_a_signed_list_is_taken():
    [flaw] = loaded(listing()).entries
    assert (flaw.id, flaw.text, flaw.severity) == ("TEST-1", "It is flawed.", Severity.WARN)


def test_s22_no_bit_of_the_list_or_its_signature_can_be_changed():
    data = listing()
    signature = KEY.sign(data)
    for place in range(len(data) * 8):
        with pytest.raises(BadListSignature):
            load_list(flipped(data, place), signature, PUBLIC)
    for place in range(len(signature) * 8):
        with pytest.raises(BadListSignature):
            load_list(data, flipped(signature, place), PUBLIC)


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
def test_s22_what_is_no_signature_signs_nothing(signature):
    with pytest.raises(BadListSignature):
        load_list(listing(), signature, PUBLIC)


def test_s22_another_key_signs_nothing():
    data = listing()
    other = Ed25519PrivateKey.generate()
    with pytest.raises(BadListSignature):
        load_list(data, other.sign(data), PUBLIC)
    with pytest.raises(ValueError, match="32 bytes"):
        load_list(data, KEY.sign(data), b"")


def test_s22_an_older_list_never_takes_the_place_of_a_newer_one():
    held = loaded(listing(serial="7"), NO_LIST)
    with pytest.raises(OlderList):
        loaded(listing(serial="6"), held)
    assert loaded(listing(serial="8"), held).serial == 8


def test_s22_two_lists_with_one_serial_are_one_too_many():
    held = parse_list(listing())
    other = listing(entry(text='"Nothing is wrong."'))
    assert loaded(listing(), held) == held
    with pytest.raises(OlderList):
        loaded(other, held)


def test_s22_the_packaged_list_is_held_where_no_other_is():
    with pytest.raises(OlderList):
        loaded(listing(serial=str(packaged().serial)))


def test_s22_a_huge_file_is_refused_before_it_is_looked_at():
    with pytest.raises(MalformedList, match="bytes"):
        load_list(bytes(MAX_BYTES + 1), bytes(64), PUBLIC)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"not a list",
        b"[" * 100_000,
        b"x = " + b"[" * 100_000,
        listing(serial="0"),
        listing(serial="-1"),
        listing(serial="true"),
        listing(serial="7.0"),
        listing(serial='"7"'),
        listing(serial=str(MAX_SERIAL + 1)),
        listing(serial="9" * 5_000),
        listing(top="expires = 1"),
        listing().replace(b"format = 1", b"format = 2"),
        listing().replace(b"format = 1", b"format = true"),
        listing().replace(b"format = 1", b""),
        b"format = 1\nserial = 7\nadvisory = 1",
        b"format = 1\nserial = 7\nadvisory = [1]",
        listing(entry(), entry()),
        listing(entry() + "mended = true\n"),
        listing(entry(id="")),
        listing(entry(id='"test-1"')),
        listing(entry(id='"A"')),
        listing(entry(id="1")),
        listing(entry(family='"nobody"')),
        listing(entry(family="[]")),
        listing(entry(severity='"none"')),
        listing(entry(text='""')),
        listing(entry(text='"\\u001b[2J"')),
        listing(entry(text='"\\u202eevil"')),
        listing(entry(text='"two\\nlines"')),
        listing(entry(text=f'"{"x" * 301}"')),
        listing(entry(models='"Trezor"')),
        listing(entry(models='[""]')),
        listing(entry(sources="[]")),
        listing(entry(sources='["http://example.com"]')),
        listing(entry(sources='["javascript:alert(1)"]')),
        listing(entry(sources='["https://example.com/a b"]')),
        listing(entry(affected='"2.0.0"')),
        listing(entry(affected="[1]")),
        listing(entry(affected='[{ below = "2.0.0" }]')),
        listing(entry(affected='[{ line = "", above = "2.0.0" }]')),
        listing(entry(affected='[{ line = "Q", below = "2.0.0" }]')),
        listing(entry(affected='[{ line = [], below = "2.0.0" }]')),
        listing(entry(affected='[{ line = "", below = "2.0.0Q" }]')),
        listing(entry(affected='[{ line = "", below = "two" }]')),
        listing(entry(affected='[{ line = "", below = 2 }]')),
        listing(entry(affected='[{ line = "", from = "2.0.0", below = "2.0" }]')),
        listing(entry(affected="[" + '{ line = "" },' * 21 + "]")),
        listing(*[entry(id=f'"TEST-{number}"') for number in range(501)]),
    ],
    ids=lambda data: str(len(data)),
)
def test_s22_one_fault_refuses_the_whole_list_even_a_signed_one(data):
    with pytest.raises(MalformedList):
        loaded(data, NO_LIST)


# --- nonces
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("firmware", "proves"), [("9.5.0", True), ("9.26.5", True), ("9.4.2", False), (None, False)]
)
def test_s20_a_bitbox02_proves_its_nonces_from_its_first_firmware_that_can(firmware, proves):
    assert has_anti_exfil(device("bitbox02", firmware)) is proves


def test_s20_over_hwi_no_other_family_does():
    for family in set(Family) - {Family.BITBOX02}:
        assert not has_anti_exfil(device(family, "9.9.9"))
