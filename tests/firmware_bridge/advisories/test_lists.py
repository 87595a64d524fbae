"""Known flaws of firmware (S22), and which firmware proves its nonces (S20)."""

import re
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from device_simulators.coldcard import firmware as coldcard
from firmware_bridge import Device, Endpoint, Family, advisories
from firmware_bridge.advisories import firmware_known, has_anti_exfil, known_flaws, packaged
from firmware_bridge.makers import MAKERS
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


def just_before(bound: str) -> str:
    """The last version below it that there can be."""
    *higher, last = map(int, bound.split("."))
    while last == 0:
        *higher, last = higher
    return ".".join(map(str, [*higher, last - 1, 999]))


SPANS = [(entry, span) for entry in PACKAGED for span in entry["affected"]]


@pytest.mark.parametrize(("entry", "span"), SPANS, ids=lambda each: each.get("id") or each.get("below"))
def test_s22_a_flaw_is_told_of_the_versions_that_have_it_and_of_no_other(entry, span):
    def told(version):
        model = [*entry["models"], "Any model"][0]
        told_of = device(entry["family"], version + span["line"], model)
        assert firmware_known(told_of)
        return entry["id"] in {flaw.id for flaw in known_flaws(told_of)}

    assert told(span["from"] if "from" in span else just_before(span["below"]))
    if entry["models"]:
        other = device(entry["family"], just_before(span["below"]) + span["line"], "Any model")
        assert entry["id"] not in {flaw.id for flaw in known_flaws(other)}
    if "below" in span:
        assert told(just_before(span["below"]))
        assert not told(span["below"])
    if "from" in span:
        assert not told(just_before(span["from"]))
    for other in {"", "Q", "X"} - {one["line"] for one in entry["affected"]}:
        assert entry["id"] not in ids(entry["family"], "5.5.5" + other)


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
        (
            makes.COLDCARD,
            "5.4.5",
            [
                "COLDCARD-2026-07-ENTROPY",
                "COLDCARD-2026-08-STAGED-PSBT",
                "COLDCARD-2026-09-VIRTUAL-DISK",
                "COLDCARD-2026-08-DOUBLE-KEY",
                "COLDCARD-2026-08-OVERLONG",
                "COLDCARD-2026-09-FEE",
            ],
        ),
        (makes.LEDGER, "2.4.6", ["LEDGER-LSB-023", "LEDGER-2.5.0-SIGHASH"]),
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
    assert MAKERS[Family.COLDCARD].version("1.5.0Q") is not None
    assert MAKERS[Family.TREZOR].version("1.5.0Q") is None


# --- the form of the packaged list
# ----------------------------------------------------------------------------------


def test_s22_every_entry_has_a_name_of_its_own_and_says_when_it_became_known_and_where_it_comes_from():
    read_on, entries = packaged()
    assert len({entry.id for entry in entries}) == len(entries)
    assert all(entry.sources for entry in entries)
    assert all(re.fullmatch(r"https://[!-~]+", page) for entry in entries for page in entry.sources)
    assert all(re.fullmatch(r"20[0-9]{2}-[01][0-9](-[0-3][0-9])?", entry.date) for entry in entries)
    assert date.fromisoformat(read_on)


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
