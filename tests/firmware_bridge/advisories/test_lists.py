"""Known flaws of firmware (S22), and which firmware proves its nonces (S20)."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from device_simulators.coldcard import firmware as coldcard
from firmware_bridge import Device, Endpoint, Family, advisories
from firmware_bridge.advisories import (
    firmware_known,
    has_anti_exfil,
    known_flaws,
    packaged,
)
from firmware_bridge.makers import maker_of
from firmware_bridge.makers.versions import FirmwareVersion
from tests.conformance import makes
from tests.conformance.rigs import bridged, short_folder

PACKAGED = tomllib.loads(Path(advisories.__file__).with_name("known_flaws.toml").read_text())["advisory"]


def device(family: str, firmware: str | None, model: str = "Any model") -> Device:
    endpoint = Endpoint(Family(family), "udp:127.0.0.1:1")
    return replace(Device.at(endpoint, model), firmware=firmware)


def ids(family: str, firmware: str | None) -> set[str]:
    return {flaw.id for flaw in known_flaws(device(family, firmware))}


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


def test_s22_a_mended_coldcard_may_still_hold_a_seed_that_can_be_guessed():
    for firmware in ("4.2.0", "5.6.1", "1.5.1Q", "6.6.0X", "6.6.0QX"):
        assert ids("coldcard", firmware) == {"COLDCARD-2026-07-OLD-SEED"}
    assert ids("coldcard", "3.2.2") == set()


@pytest.mark.parametrize(
    "firmware", [None, "", "5", "?.??", "5.6.1-dirty", "5.6.1W", "1.0.31-28-g37ba7", "٥.٦.١", "5.6.1\n"]
)
def test_s22_an_unknown_version_is_said_to_be_unknown(firmware):
    unknown = device("coldcard", firmware)
    assert known_flaws(unknown) == ()
    assert not firmware_known(unknown)
    assert firmware_known(device("coldcard", "5.6.1"))


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


def test_a_missing_part_is_zero_and_lines_are_kept_apart():
    assert FirmwareVersion.parse("2.5") == FirmwareVersion.parse("2.5.0.0")
    assert FirmwareVersion.parse("1.5.0Q") != FirmwareVersion.parse("1.5.0")
    assert maker_of(Family.COLDCARD).version("1.5.0Q") is not None
    assert maker_of(Family.TREZOR).version("1.5.0Q") is None


# --- the form of the packaged list
# ----------------------------------------------------------------------------------


def test_s22_every_entry_has_a_name_of_its_own_and_says_where_it_comes_from():
    entries = packaged()
    assert len({entry.id for entry in entries}) == len(entries)
    assert all(re.fullmatch(r"[A-Z0-9][A-Z0-9.-]{2,59}", entry.id) for entry in entries)
    assert all(entry.sources for entry in entries)
    assert all(re.fullmatch(r"https://[!-~]+", page) for entry in entries for page in entry.sources)


def test_s22_every_range_is_of_versions_that_there_can_be():
    for entry in PACKAGED:
        for span in entry["affected"]:
            bounds = [span.get("from", "0.0"), span.get("below", "999999.0")]
            first, last = (maker_of(entry["family"]).version(bound + span["line"]) for bound in bounds)
            assert span.keys() <= {"line", "from", "below"}
            assert first is not None
            assert last is not None
            assert first.numbers < last.numbers, entry["id"]


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
