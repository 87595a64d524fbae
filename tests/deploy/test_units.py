"""deploy/systemd: the units load, and leave little open by systemd's own count. What they start and are told:
`test_compose.py`.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.processes import ended

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "systemd"
NAMESPACES = FOLDER / "signerd.service.d" / "20-namespaces.conf"
UNIT = ROOT / "signerd" / "service" / "signerd.service"
PLATFORM = ("custody-serve.service", "custody-worker.service")
HARDENING = FOLDER / "custody-.service.d" / "hardening.conf"

analysed = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")


def exposure(unit: Path) -> float:
    told = ended(["systemd-analyze", "security", "--offline=true", "--no-pager", unit])
    if "Failed to create directory '/run/systemd" in told.stderr:
        pytest.skip("systemd 257 analyses as an ordinary user only where systemd runs")
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", told.stdout)
    assert found, told.stderr
    return float(found[1])


def settings(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and line[0] not in "#[":
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


@analysed
@pytest.mark.parametrize("name", PLATFORM)
def test_the_platforms_units_are_exposed_little(name, tmp_path):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    assert exposure(tmp_path / name) < 2.0


@analysed
def test_the_signers_unit_and_its_drop_in(tmp_path):
    """A service that gives nothing up has 9 (systemd 257) or more (252): the test of the analysis."""
    bare = tmp_path / "bare.service"
    bare.write_text("[Service]\nExecStart=/usr/bin/true\nUser=games\n")
    assert exposure(bare) >= 9
    unit = signers_unit(tmp_path)
    # A user's manager may not shorten the set of capabilities: with that, the unit does not start (218).
    assert exposure(unit) <= 5.9
    (tmp_path / "signerd.service.d").mkdir()
    shutil.copy(NAMESPACES, tmp_path / "signerd.service.d")
    assert exposure(unit) < 2.0


def signers_unit(folder: Path) -> Path:
    """As `signerd service install` writes it; for a user, which the analysis of a file cannot know."""
    unit = folder / "signerd.service"
    text = UNIT.read_text().replace("@COMMAND@", "/usr/bin/true").replace("@STATE@", str(folder))
    unit.write_text(text.replace("[Service]\n", "[Service]\nUser=games\n"))
    return unit


@analysed
@pytest.mark.parametrize("name", [*PLATFORM, "signerd.service"])
def test_systemd_knows_every_line(name, tmp_path):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    signers_unit(tmp_path)
    # The program is not installed here.
    for unit in tmp_path.glob("*.service"):
        unit.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/usr/bin/true", unit.read_text()))
    told = ended(["systemd-analyze", "verify", "--man=no", tmp_path / name])
    ours = [line for line in told.stderr.splitlines() if str(tmp_path) in line or name in line]
    assert not [line for line in ours if "Unknown" in line or "Failed to parse" in line or "ignoring" in line]


def test_what_lets_a_devices_process_give_up_the_rest_is_allowed():
    allowed = settings(UNIT.read_text())
    calls = {call for line in allowed["SystemCallFilter"] if line[0] not in "~@" for call in line.split()}
    landlock = {f"landlock_{name}" for name in ("create_ruleset", "add_rule", "restrict_self")}
    assert {*landlock, "seccomp", "prlimit64"} <= calls
    assert "AF_NETLINK" in allowed["RestrictAddressFamilies"][0]
    # Namespaces stand apart: where users may make none, the unit must start without that file.
    needing = {"PrivateUsers", "PrivateTmp", "ProtectSystem", "ProtectHome", "BindPaths", "ProtectHostname"}
    assert not needing & allowed.keys()
