"""The fuzzer's corpus, replayed without a fuzzer: an input that once went somewhere new goes there again, and
breaks nothing; seeds, mutators and runs.
"""

import json
import time

import pytest

from fuzz import corpus
from fuzz.targets import TARGETS, platform
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


def seeds(name):
    return list(TARGETS[name].seeds())


def test_f_the_number_that_ended_a_daemon_is_survived():
    seed = next(seed for seed in seeds("platform") if b"list-wallets" in seed)
    told = json.loads(seed)
    for vault in told["GET /api/v1/list-wallets"][2]:
        vault["m"] = 2**63
    platform.check(json.dumps(told).encode())
