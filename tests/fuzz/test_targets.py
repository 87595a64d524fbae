"""The seeds, the mutators and the runs of the fuzzer."""

import json
import subprocess
import sys
from random import Random

import pytest

from fuzz.psbt_maps import put_together, take_apart
from fuzz.runs import read_report
from fuzz.targets import TARGETS, platform, psbt
from multisig import Psbt, Severity, Transaction


def seeds(name):
    return list(TARGETS[name].seeds())


def test_some_seeds_are_sound_and_signed_and_some_are_not():
    found = [psbt._parsed(seed) for seed in seeds("psbt")]
    inspected = [psbt.inspect(p, psbt.VAULT, network=psbt.VAULT.network) for p in found if p is not None]
    assert any(item.ok and item.inputs[0].signed_by for item in inspected)
    assert any(item.ok and item.op_returns for item in inspected)
    assert any(item.op_returns and item.op_returns[0].token for item in inspected)
    assert any(finding.severity is Severity.REFUSE for item in inspected for finding in item.findings)


def test_f_every_call_of_the_platform_s_is_among_the_seeds():
    asked = {name for seed in seeds("platform") for name in json.loads(seed)}
    # What a daemon calls, by the names of the client's methods and what it builds itself.
    assert len(asked) == 14
    assert {"POST /auth/refresh", "GET /api/v1/contract", "POST /api/v1/sign-psbt"} < asked


def test_f_the_number_that_ended_a_daemon_is_survived():
    seed = next(seed for seed in seeds("platform") if b"list-wallets" in seed)
    told = json.loads(seed)
    for vault in told["GET /api/v1/list-wallets"][2]:
        vault["m"] = 2**63
    platform.check(json.dumps(told).encode())


@pytest.mark.parametrize("name", ["psbt", "worker", "key_files"])
def test_a_mutator_makes_one_input_of_one_seed_and_many_of_many(name):
    mutator = TARGETS[name].mutator
    assert mutator is not None

    def change(value):
        return value[1:] + b"\x01"

    data = seeds(name)[0]
    made = [mutator(data, Random(number), change) for number in range(200)]
    assert made == [mutator(data, Random(number), change) for number in range(200)]
    assert len(set(made)) > 50
    for one in made:
        TARGETS[name].check(one)


def test_the_structure_of_a_psbt_survives_its_mutator():
    data = psbt.make_spend(psbt.VAULT).to_bytes()
    assert put_together(take_apart(data)) == data
    mutator = TARGETS["psbt"].mutator
    parsed = [psbt._parsed(mutator(data, Random(number), lambda value: value)) for number in range(300)]
    sound = [one for one in parsed if one is not None]
    assert len(sound) > 60, "hardly one in five comes past the first checks"
    assert len({one.tx for one in sound}) > 20, "the transaction never changes"
    rebound = [one for one in sound if _previous(one) != _previous(Psbt.parse(data)) and _is_bound(one)]
    assert rebound, "no coin is exchanged together with its hash"


def _previous(one: Psbt) -> Transaction | None:
    return one.inputs[0].non_witness_utxo


def _is_bound(one: Psbt) -> bool:
    previous = _previous(one)
    return previous is not None and previous.txid == one.inputs[0].outpoint.txid


@pytest.mark.parametrize("data", [b"", b"psbt", b"psbt\xff", b"psbt\xff\x01"])
def test_what_is_no_psbt_is_taken_apart_as_far_as_it_goes(data):
    maps = take_apart(data)
    assert maps is None or put_together(maps).startswith(b"psbt\xff")


LOG = """
#215 INITED cov: 293 ft: 474 corp: 61/5211b exec/s: 0 rss: 71Mb
#900 NEW    cov: 301 ft: 490 corp: 63/5311b lim: 10 exec/s: 0 rss: 71Mb L: 10/10 MS: 1 Custom-
#1000 DONE   cov: 302 ft: 491 corp: 64/5311b lim: 10 exec/s: 0 rss: 71Mb
stat::number_of_executed_units: 1000
stat::peak_rss_mb:              72
"""


def test_the_figures_of_a_run():
    report = read_report(LOG, new_inputs=3)
    assert (report.executions, report.coverage_before, report.coverage) == (1000, 293, 302)
    assert (report.features, report.new_inputs, report.memory_mb) == (491, 3, 72)
    assert read_report("", new_inputs=0).executions == 0


def test_an_input_is_replayed_without_a_fuzzer(tmp_path):
    (tmp_path / "input").write_bytes(b"psbt\xff")
    command = [sys.executable, "-m", "fuzz", "replay", "psbt", str(tmp_path / "input")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "every promise was kept" in done.stdout
