"""How much of what takes long a run tries: one dial for all of it.

A property draws other examples in each run, and of cases that take seconds each a run draws some: a few runs
try all. ``TEST_EXAMPLES=50 make test TESTS=…`` tries fifty times as many; a second interpreter, after a
first one tried everything, tries a few. What is drawn follows from the commit's files: who tests a commit
again draws the same. The first lines of a run name its draw: ``TEST_RUN=… make test`` repeats it on other
files.
"""

import os
import random
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

BRIEFLY = "CUSTODY_TEST_BRIEFLY"
FEW = 10
TIMES = int(os.environ.get("TEST_EXAMPLES", "1"))


def _tree() -> str:
    """Of the commit's files, changed ones as they were; by chance where there is no repository."""
    try:
        tree = subprocess.check_output(
            ["git", "rev-parse", "--short=8", "HEAD^{tree}"],
            cwd=Path(__file__).parent,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return secrets.token_hex(4)
    return tree.strip()


# Every worker has to draw the same cases: those that are started later inherit it.
RUN = os.environ["TEST_RUN"] = os.environ.get("TEST_RUN") or _tree()


def examples(count: int) -> int:
    return min(count, FEW) if BRIEFLY in os.environ else count * TIMES


def drawn(cases: Sequence[T], count: int, *, of: str) -> list[T]:
    """``count`` of the cases, times the dial, in their order. ``of``: what they belong to, which draws for
    itself.
    """
    whole = range(len(cases))
    chosen = random.Random(f"{RUN} {of}").sample(whole, min(len(cases), count * TIMES))
    return [cases[which] for which in sorted(chosen)]
