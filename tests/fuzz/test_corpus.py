"""The fuzzer's corpus, replayed without a fuzzer: an input that once went somewhere new goes there again, and
breaks nothing.
"""

import time

import pytest

from fuzz import corpus
from fuzz.targets import TARGETS
from tests.support.examples import drawn

# An input takes milliseconds; what takes seconds would be a way to keep a daemon busy (S23).
MOST_SECONDS = 5.0
# To a whole daemon each, which takes half a second to start.
DRAWN = {"platform": 6}


@pytest.mark.parametrize("name", TARGETS)
def test_every_kept_input_keeps_the_promises(name):
    kept = list(corpus.kept(name))
    assert kept, "a target without a corpus begins from nothing each time"
    for path in drawn(kept, DRAWN.get(name, len(kept)), of=name):
        began = time.process_time()
        TARGETS[name].check(path.read_bytes())
        assert time.process_time() - began < MOST_SECONDS, f"{path.name} takes too long"


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_keeps_the_promises(name):
    seeds = list(TARGETS[name].seeds())
    for seed in drawn(seeds, DRAWN.get(name, len(seeds)), of=f"{name} seeds"):
        assert len(seed) <= TARGETS[name].largest, "the fuzzer would cut it off"
        TARGETS[name].check(seed)
