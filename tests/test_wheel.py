"""What is built for users: the five packages whole, and nothing of the checkout that would not be there. Two
builds of one commit give the same bytes.
"""

import json
import os
import shutil
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.processes import ended, said

pytestmark = pytest.mark.slow("builds the package three times")

ROOT = Path(__file__).parents[1]
PACKAGES = ("custody", "device_simulators", "firmware_bridge", "multisig", "signerd")
# Imports each module of the wheel, and prints what of the checkout was imported beside it.
_IMPORT_ALL = """
import importlib, json, pkgutil, sys
wheel, checkout, *packages = sys.argv[1:]
sys.path.insert(0, wheel)
for package in map(importlib.import_module, packages):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__") and ".migrations." not in module.name:
            importlib.import_module(module.name)
files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
own = [file for file in files if file.startswith(wheel)]
foreign = [file for file in files if file.startswith(checkout) and "/site-packages/" not in file]
print(json.dumps([len(own), foreign]))
"""


def build(checkout: Path, folder: Path, *targets: str) -> dict[str, Path]:
    """What hatchling makes of a checkout, by the last letters of each file's name."""
    targets = tuple(f"-t{target}" for target in targets)
    said([sys.executable, "-m", "hatchling", "build", *targets, "-d", folder], cwd=checkout)
    return {file.suffix: file for file in folder.iterdir()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")[".whl"]


def test_the_wheel_holds_the_five_packages_whole_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        built = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file())
    names = {file.relative_to(ROOT).as_posix() for file in files if "__pycache__" not in file.parts}
    rules = {f"signerd/udev/{file.name}" for file in (ROOT / "udev").iterdir()}
    assert built == names | rules
    assert rules


def test_the_sdist_holds_what_a_build_needs_and_no_more_and_gives_the_same_wheel(wheel, tmp_path):
    sdist = build(ROOT, tmp_path / "sdist", "sdist")[".gz"]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        # Python before 3.11.4 knows no filter.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        built = {name for name in archive.namelist() if ".dist-info/" not in name}
    rules = {f"udev/{file.name}" for file in (ROOT / "udev").iterdir()}
    assert names - built == rules | {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", ".gitignore"}
    (source,) = tmp_path.glob("signerd-*")
    again = build(source, tmp_path / "again", "wheel")[".whl"]
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no clone, or no git")
def test_two_clones_give_the_same_bytes(tmp_path):
    made = []
    for name, mask in (("a", 0o022), ("another", 0o077)):
        old = os.umask(mask)
        try:
            clone = tmp_path / name
            said(["git", "clone", "-q", "--shared", ROOT, clone])
            made.append(build(clone, tmp_path / f"{name}-built", "wheel", "sdist"))
        finally:
            os.umask(old)
    first, second = made
    assert first.keys() == second.keys() == {".whl", ".gz"}
    assert [first[kind].name for kind in first] == [second[kind].name for kind in first]
    for kind, file in first.items():
        assert file.read_bytes() == second[kind].read_bytes(), kind


def test_no_module_of_the_wheel_imports_anything_of_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-I", "-c", _IMPORT_ALL, tmp_path, ROOT, *PACKAGES]
    modules, foreign = json.loads(said(command, cwd=tmp_path))
    assert modules > 500
    assert foreign == []


def requirements(of: Distribution, extras: set[str]) -> list[Distribution]:
    """What these extras install beside it, all of it at hand in this environment."""
    found: dict[str, Distribution] = {}
    waiting = [(of, {"", *extras})]
    while waiting:
        this, asked = waiting.pop()
        for text in this.requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in asked):
                continue
            # An extra of its own names the project again.
            other = of if needed.name == of.name else distribution(needed.name)
            if needed.name not in found or needed.extras:
                found[needed.name] = other
                waiting.append((other, {"", *needed.extras}))
    return [each for each in found.values() if each is not of]


def interpreter(folder: Path, wheel: Path) -> Path:
    """One with the wheel and what a desktop asks for, but HWI, which installers leave out where they heed its
    bound. No index is needed.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (own,) = site.glob("*.dist-info")
    found = [each for each in requirements(PathDistribution(own), {"desktop"}) if each.name != "hwi"]
    for each in found:
        for name in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(each.locate_file(name))
    return folder / "bin" / "python"


_LOOK = """
import asyncio
from firmware_bridge import Bridge, Endpoint
from multisig import Network

async def look():
    line = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    place = Endpoint.parse(f"ledger:tcp:127.0.0.1:{line.sockets[0].getsockname()[1]}")
    async with Bridge(network=Network.REGTEST, endpoints=[place], usb=False) as bridge:
        for device in await bridge.refresh():
            print(device.state, device.detail)

asyncio.run(look())
"""


def test_without_hwi_the_line_that_brings_it_is_named(wheel, tmp_path):
    bare = interpreter(tmp_path / "installed", wheel)
    for asked in (("-c", _LOOK), ("-m", "signerd", "--state", str(tmp_path / "state"), "doctor")):
        done = ended([bare, "-I", *asked])
        words = " ".join(done.stdout.split())
        assert f"uv pip install --python {bare}" in words, done.stdout + done.stderr
        assert "hwi==3.2.0" in words
