"""What checks and describes a release, with the tools of `make release`; skipped where they are missing."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.examples import drawn
from tests.support.processes import said

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.prefix).parent / f"{Path(sys.prefix).name}-release" / "bin"
pytestmark = pytest.mark.skipif(
    not (TOOLS / "twine").exists(), reason=f"{TOOLS} is missing: `make .venv-release/.installed` makes it"
)


def test_the_index_would_take_wheel_and_sdist(tmp_path):
    said([sys.executable, "-m", "hatchling", "build", "-d", tmp_path], cwd=ROOT)
    files = sorted(tmp_path.iterdir())
    assert {file.suffix for file in files} == {".whl", ".gz"}
    assert said([TOOLS / "twine", "check", "--strict", *files]).count("PASSED") == len(files)


@pytest.mark.parametrize("part", drawn(["desktop", "server"], 1, of=__name__))
def test_the_sbom_names_every_locked_package_with_its_hashes(part, tmp_path):
    lock = ROOT / "lock" / f"{part}.txt"
    # One of two versions by the interpreter's.
    locked = set(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock.read_text(), re.MULTILINE))
    made = []
    for name in ("a", "b"):
        file = tmp_path / f"{name}.json"
        command = ["requirements", lock, "--pyproject", ROOT / "pyproject.toml", "--mc-type", "application"]
        output = ["--output-reproducible", "--output-format", "JSON", "--output-file", file]
        said([TOOLS / "cyclonedx-py", *command, *output])
        made.append(file.read_bytes())
    assert made[0] == made[1]
    found = json.loads(made[0])
    assert found["bomFormat"] == "CycloneDX"
    assert {(one["name"], one["version"]) for one in found["components"]} == locked
    for one in found["components"]:
        hashes = [each for reference in one["externalReferences"] for each in reference.get("hashes", ())]
        assert hashes, one["name"]
