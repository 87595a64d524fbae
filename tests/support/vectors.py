"""Test vectors as data: the BIPs' official ones, which are outside the project, and the project's own.

The official ones are read from SIGNERD_VECTORS, or `../shared/vectors` relative to the project's root.
Without them the tests that need them are skipped.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Vector = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "vectors"
VARIABLE = "SIGNERD_VECTORS"


def folder() -> Path | None:
    """The folder of the official vectors, or None."""
    chosen = os.environ.get(VARIABLE)
    place = Path(chosen) if chosen else ROOT.parent / "shared" / "vectors"
    if chosen and not place.is_dir():
        # A named folder must exist: skipping would hide a mistyped path.
        raise FileNotFoundError(f"{VARIABLE} names {place}, which is no folder")
    return place if place.is_dir() else None


def official(file: str, keep: Callable[[Vector], bool] = lambda _: True) -> list[Any]:
    """The vectors of one official file as parameters of a test; a skipped one where the file is absent."""
    place = folder()
    if place is None:
        reason = f"official BIP vectors not found: neither ../shared/vectors nor {VARIABLE}"
        return [pytest.param(None, id=f"{file}-absent", marks=pytest.mark.skip(reason=reason))]
    return _parameters(place / file, keep)


def own(file: str, keep: Callable[[Vector], bool] = lambda _: True) -> list[Any]:
    """The project's own vectors of one file, as parameters of a test."""
    return _parameters(OWN / file, keep)


def _parameters(path: Path, keep: Callable[[Vector], bool]) -> list[Any]:
    vectors = json.loads(path.read_text(encoding="utf-8"))["vectors"]
    chosen = [pytest.param(vector, id=vector["id"]) for vector in vectors if keep(vector)]
    # A test without vectors could not fail.
    assert chosen, f"no vector of {path.name} was chosen"
    return chosen
