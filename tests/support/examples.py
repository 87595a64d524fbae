"""How many examples a run of the tests tries, set by one variable.

A property draws new examples in each run, and a run draws some of the cases that take seconds: a few runs
try all. ``TEST_EXAMPLES=50 make test TESTS=…`` tries fifty times as many; a further interpreter tries only a
few. The draw depends on the commit's files: testing a commit again repeats it. The first lines of a run name
its draw: ``TEST_RUN=… make test`` repeats it on other files.
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
    """The hash of the commit's tree, without later changes; random where there is no repository."""
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


# Every worker has to draw the same cases: processes started later inherit it.
RUN = os.environ["TEST_RUN"] = os.environ.get("TEST_RUN") or _tree()


def examples(count: int) -> int:
    return min(count, FEW) if BRIEFLY in os.environ else count * TIMES


def drawn(cases: Sequence[T], count: int, *, of: str) -> list[T]:
    """``count`` of the cases times ``TEST_EXAMPLES``, in their order. ``of``: what they belong to; each draws
    independently.
    """
    whole = range(len(cases))
    chosen = random.Random(f"{RUN} {of}").sample(whole, min(len(cases), count * TIMES))
    return [cases[which] for which in sorted(chosen)]
