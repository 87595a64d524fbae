"""device virtual, demo."""

import json
import subprocess
import sys

import pytest

from signerd.cli import devices
from signerd.demo import story
from tests.support.command import signerd
from tests.support.rigs import short_folder


@pytest.mark.parametrize(
    ("family", "listen"), [("trezor", "127.0.0.1:0"), ("coldcard", "c.sock"), ("ledger", "127.0.0.1:0")]
)
def test_a_virtual_device_runs_as_a_program_and_keeps_its_seed(family, listen):
    with short_folder() as folder:
        address = listen if ":" in listen else f"{folder}/{listen}"
        command = [sys.executable, "-m", "signerd", "device", "virtual", family, "--listen", address]
        command += ["--seed-file", f"{folder}/seed", "--auto", "approve", "--json"]
        seen = []
        for _ in range(2):
            done = subprocess.run(
                command, input="quit\n", capture_output=True, text=True, timeout=300, check=False
            )
            assert done.returncode == 0, done.stderr
            seen.append([json.loads(line) for line in done.stdout.splitlines()])
        ready = seen[0][0]
        assert ready["event"] == "ready"
        assert ready["endpoint"].startswith(f"{family}:")
        assert ready["network"] == "regtest"
        assert seen[1][0]["fingerprint"] == ready["fingerprint"]
        assert seen[0][-1] == {"event": "stopped"}


def test_an_address_that_cannot_be_is_named():
    ended = signerd("device", "virtual", "trezor", "--listen", "nowhere", "--json")
    assert ended.status == 1
    assert json.loads(ended.out)["event"] == "error"


@pytest.mark.parametrize(
    "arguments", [["toaster"], ["trezor", "--network", "mainnet"], ["trezor", "--auto", "maybe"]]
)
def test_what_cannot_be_is_a_mistake_of_use(arguments):
    assert signerd("device", "virtual", *arguments).status == 2


def test_the_names_on_the_command_line_are_those_of_the_library():
    from device_simulators.cli import SCRIPTS, TEST_NETWORKS
    from device_simulators.fleet import FAMILIES

    assert {family.value for family in devices.Family} == {str(family) for family in FAMILIES}
    assert {decision.value for decision in devices.Decision} == {name for name in SCRIPTS if name}
    assert {name.value for name in devices.TestNetwork} == {str(network) for network in TEST_NETWORKS}


@pytest.mark.parametrize(("arguments", "auto"), [(["--auto"], True), ([], False)])
def test_demo_tells_the_story_and_ends_with_its_status(monkeypatch, arguments, auto):
    told = []

    def main(*, auto: bool) -> int:
        told.append(auto)
        return 3

    monkeypatch.setattr(story, "main", main)
    assert signerd("demo", *arguments).status == 3
    assert told == [auto]
