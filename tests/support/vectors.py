"""Test vectors as data: the official ones of the BIPs, which stand beside the project, and the project's own.

The official ones are looked for in `../shared/vectors` beside the project's root, or where SIGNERD_VECTORS
says. Where they are absent, the tests that need them are skipped and say so;
the project's own are always there.
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
    """Where the official vectors are; None where there are none."""
    chosen = os.environ.get(VARIABLE)
    place = Path(chosen) if chosen else ROOT.parent / "shared" / "vectors"
    if chosen and not place.is_dir():
        # A folder that was named must exist: skipping in silence would hide a mistyped path.
        raise FileNotFoundError(f"{VARIABLE} names {place}, which is no folder")
    return place if place.is_dir() else None


def official(file: str, keep: Callable[[Vector], bool] = lambda _: True) -> list[Any]:
    """The vectors of one official file as parameters of a test,
    one skipped one where the files are absent.
    """
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
    # A filter that matches nothing would be a test that cannot fail.
    assert chosen, f"no vector of {path.name} was chosen"
    return chosen
