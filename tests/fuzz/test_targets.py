"""The seeds, the mutators and the runs of the fuzzer."""

import json

from fuzz.targets import TARGETS, platform


def seeds(name):
    return list(TARGETS[name].seeds())


def test_f_the_number_that_ended_a_daemon_is_survived():
    seed = next(seed for seed in seeds("platform") if b"list-wallets" in seed)
    told = json.loads(seed)
    for vault in told["GET /api/v1/list-wallets"][2]:
        vault["m"] = 2**63
    platform.check(json.dumps(told).encode())
