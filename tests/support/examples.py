"""How much of what takes long a run tries: one dial for all of it.

A property draws other examples in each run, and of cases that take seconds each a run draws some: a few runs
try all. ``TEST_EXAMPLES=50 make test TESTS=…`` tries fifty times as many; a second interpreter, after a
first one tried everything, tries a few. The first lines of a run name it: ``TEST_RUN=… make test`` draws the
same cases and databases again (a failing example of a property Hypothesis prints).
"""

import os
import random
import secrets
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

BRIEFLY = "CUSTODY_TEST_BRIEFLY"
FEW = 10
TIMES = int(os.environ.get("TEST_EXAMPLES", "1"))
# Every worker has to draw the same cases: those that are started later inherit it.
RUN = os.environ.setdefault("TEST_RUN", secrets.token_hex(4))


def examples(count: int) -> int:
    return min(count, FEW) if BRIEFLY in os.environ else count * TIMES


def drawn(cases: Sequence[T], count: int, *, of: str) -> list[T]:
    """``count`` of the cases, times the dial, in their order. ``of``: what they belong to, which draws for
    itself.
    """
    whole = range(len(cases))
    chosen = random.Random(f"{RUN} {of}").sample(whole, min(len(cases), count * TIMES))
    return [cases[which] for which in sorted(chosen)]
