"""How much a run of the tests tries.

``make test`` tries every behaviour once: on SQLite, in one browser, with few examples, without what is marked
``slow``. ``make test-full`` (``TEST_FULL=1``) tries everything. Also there a run draws some of the cases that
take seconds: a few runs try all. ``TEST_EXAMPLES=50`` tries everything with fifty times as many.

The draw depends on the commit's files: testing a commit again repeats it. The first lines of a run name
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

TIMES = int(os.environ.get("TEST_EXAMPLES", "1"))
IS_FULL = "TEST_FULL" in os.environ or TIMES > 1
FEW = 5


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
    """At least two: the first that hypothesis tries is the simplest one, the same in each run."""
    return count * TIMES if IS_FULL else max(2, min(count // 4, FEW))


def drawn(cases: Sequence[T], count: int, *, of: str) -> list[T]:
    """``count`` of the cases times ``TEST_EXAMPLES``, in their order; a quarter of them in a fast run.
    ``of``: what they belong to; each draws independently.
    """
    whole = range(len(cases))
    many = count * TIMES if IS_FULL else -(-count // 4)
    chosen = random.Random(f"{RUN} {of}").sample(whole, min(len(cases), many))
    return [cases[which] for which in sorted(chosen)]
