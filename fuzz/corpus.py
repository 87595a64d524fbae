"""The kept inputs of each target: a file for each, named by its hash,
which the tests replay without any fuzzer.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from fuzz.target import Target

ROOT = Path(__file__).resolve().parent
KEPT = ROOT / "corpus"
# New inputs of a run, outside of git until `keep` adds them to the corpus.
FOUND = ROOT / "found"
# Bytes of the whole corpus, at most.
LARGEST_TOTAL = 1_000_000


def kept(name: str) -> tuple[Path, ...]:
    return tuple(sorted(path for path in (KEPT / name).glob("*") if path.is_file()))


def write(folder: Path, inputs: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def write_seeds(target: Target, folder: Path) -> None:
    write(folder, target.seeds())
