"""What is built for users: the five packages whole, and nothing of the checkout that would not be there."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (file,) = folder.glob("*.whl")
    return file


def test_the_wheel_holds_the_five_packages_whole_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        built = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file())
    assert built == {file.relative_to(ROOT).as_posix() for file in files if "__pycache__" not in file.parts}


def test_no_module_of_the_wheel_imports_anything_of_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-I", "-c", _IMPORT_ALL, tmp_path, ROOT, *PACKAGES],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    modules, foreign = json.loads(ended.stdout)
    assert modules > 500
    assert foreign == []
