"""The kept inputs of each target: a file for each, named by its hash,
which the tests replay without any fuzzer.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from fuzz.target import Target

ROOT = Path(__file__).resolve().parent
KEPT = ROOT / "corpus"
# What a run finds stays here, and in no commit, until somebody folds it in.
FOUND = ROOT / "found"
# All of it, in a repository that people clone.
LARGEST_TOTAL = 1_000_000


def kept(name: str) -> tuple[Path, ...]:
    return tuple(sorted(path for path in (KEPT / name).glob("*") if path.is_file()))


def write(folder: Path, inputs: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def write_seeds(target: Target, folder: Path) -> None:
    write(folder, target.seeds())
