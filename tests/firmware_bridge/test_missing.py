"""HWI is left out by an installer that heeds its bound: which line brings it, and that it brings no less."""

import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from firmware_bridge import missing

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
DEVICES = [Requirement(text) for text in PROJECT["optional-dependencies"]["devices"]]
# HWI keeps these two below what runs on Python 3.14, and its master has lifted both bounds.
LIFTED = {"cbor2", "protobuf"}


def named(version):
    """What the extra asks for on this Python, without HWI."""
    wanted = {each.name: each for each in DEVICES if each.marker is None or each.marker.evaluate(version)}
    wanted.pop("hwi", None)
    return wanted


def of_hwi(version):
    needs = map(Requirement, requires("hwi") or ())
    return [each for each in needs if each.marker is None or each.marker.evaluate({**version, "extra": ""})]


def test_hwi_is_asked_for_where_its_own_bound_lets_it():
    (hwi,) = [each for each in DEVICES if each.name == "hwi"]
    assert f"{hwi.name}{hwi.specifier}" == missing.HWI
    heeded = {minor: hwi.marker.evaluate({"python_version": f"3.{minor}"}) for minor in range(11, 15)}
    assert heeded == {minor: (3, minor) < missing._REFUSED for minor in heeded}


def test_beyond_it_the_project_itself_asks_for_all_that_hwi_needs():
    version = {"python_version": "3.14", "sys_platform": "linux"}
    ours = {**{each.name: each for each in map(Requirement, PROJECT["dependencies"])}, **named(version)}
    for needed in of_hwi(version):
        if needed.name == "typing-extensions":
            continue  # pydantic's
        assert needed.name in ours
        if needed.name not in LIFTED:
            lowest = [each.version for each in ours[needed.name].specifier if each.operator in {">=", "=="}]
            assert lowest
            assert all(needed.specifier.contains(each) for each in lowest), needed


@pytest.mark.parametrize(
    ("version", "hidden", "line"),
    [
        ((3, 12), {"hwilib"}, "{python} -m pip install hwi==3.2.0"),
        ((3, 13), {"hwilib"}, "{python} -m pip install --ignore-requires-python --no-deps hwi==3.2.0"),
        ((3, 14), {"hwilib", "pip"}, "uv pip install --python {python} --no-deps hwi==3.2.0"),
    ],
)
def test_the_sentence_names_the_line_for_this_environment(monkeypatch, version, hidden, line):
    monkeypatch.setattr(missing, "find_spec", lambda name: None if name in hidden else object())
    monkeypatch.setattr(sys, "version_info", version)
    told = missing.missing_hwi()
    assert told.endswith(f"run {line.format(python=sys.executable)}")


def test_nothing_is_missing_here():
    assert missing.missing_hwi() is None
