"""Whatever is locked for users may be used and passed on with a program under MIT: by the licence that each
package itself declares.
"""

import re
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

LOCKS = Path(__file__).parents[1] / "lock"
# SPDX's names, and what packages without one write. LGPL: a library that its user can exchange, as every
# Python package is.
ALLOWED = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "LGPL-2.1-or-later",
    "LGPL-3.0-only",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "3-Clause BSD License",
    "Apache Software License",
    "BSD License",
    "MIT License",
    "Mozilla Public License 2.0 (MPL 2.0)",
}
# Where a package leaves the choice, what is chosen: hidapi's is one of three.
CHOSEN = {"hidapi": "BSD-3-Clause"}
# What brings its licence as a file alone.
TOLD_BY_FILE = {"pyrage": "The MIT License (MIT)"}
# What is installed on Windows alone, as its own pages say.
ELSEWHERE = {"pywin32-ctypes": "BSD-3-Clause", "tzdata": "Apache-2.0"}


@cache
def locked() -> dict[str, Requirement]:
    """Each package that a signer's desktop or the platform's server installs, with its line's marker."""
    lines = "".join((LOCKS / f"{part}.txt").read_text() for part in ("desktop", "server"))
    found = re.findall(r"^([A-Za-z0-9._-]+==[^\\\n]+)", lines, re.MULTILINE)
    return {requirement.name: requirement for requirement in map(Requirement, found)}


def declared(package: Distribution) -> set[str]:
    """As the package says it: an SPDX expression, else classifiers, else a line of text."""
    metadata = package.metadata
    expression = metadata.get("License-Expression") or ""
    if expression:
        return {
            word for word in re.findall(r"[A-Za-z0-9.+-]+", expression) if word not in {"AND", "OR", "WITH"}
        }
    classifiers = {
        line.rpartition("::")[2].strip()
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License ::")
    }
    return classifiers or {(metadata.get("License") or "nothing").strip()}


def first_line(package: Distribution) -> str:
    """Of the licence that it brings."""
    (path,) = [path for path in package.files or () if path.name == "LICENSE"]
    return path.read_text().strip().splitlines()[0]


def licences(name: str) -> set[str]:
    """None of what is not installed here."""
    marker = locked()[name].marker
    if name in CHOSEN | ELSEWHERE:
        return {(CHOSEN | ELSEWHERE)[name]}
    if marker and not marker.evaluate():
        return set()
    if name in TOLD_BY_FILE:
        assert first_line(distribution(name)) == TOLD_BY_FILE[name]
        return {"MIT"}
    return declared(distribution(name)) or {"nothing"}


def test_what_is_locked_has_a_licence_that_is_allowed():
    assert {name: licences(name) - ALLOWED for name in locked() if not licences(name) <= ALLOWED} == {}


def test_no_line_of_the_lists_is_left_over():
    assert CHOSEN.keys() | ELSEWHERE.keys() | TOLD_BY_FILE.keys() <= locked().keys()
