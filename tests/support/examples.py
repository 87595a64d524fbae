"""How many examples of a property a run tries: one dial for all of them.

Each run draws others, so that many runs try many. ``TEST_EXAMPLES=50 make test TESTS=…`` tries fifty times as
many; a second interpreter, after a first one tried everything, tries a few.
"""

import os

BRIEFLY = "CUSTODY_TEST_BRIEFLY"
FEW = 10
TIMES = int(os.environ.get("TEST_EXAMPLES", "1"))


def examples(count: int) -> int:
    return min(count, FEW) if BRIEFLY in os.environ else count * TIMES
