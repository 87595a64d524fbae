"""The contract suite on a device at an endpoint: the same cases, and they fail where they should."""

import re
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from firmware_bridge import Endpoint, Family
from tests.conformance import remote, rigs
from tests.support import wrong_hands
from tests.support.examples import drawn

_FAMILIES = (Family.TREZOR, Family.COLDCARD, Family.LEDGER)
_ROOT = Path(__file__).parents[2]
_SUITE = "tests/conformance"
# A whole run of pytest, on a machine that may be busy with twenty others.
_PATIENCE = 900
_COUNTS = re.compile(r"(\d+) (passed|failed|skipped|deselected|errors?)")
WHOLE = pytest.mark.slow("a run of pytest of its own")
_CASES = "test_a_vault_spend_is_signed_and_verified or test_a_vaults_address_is_shown or sign-two-payments"


@pytest.fixture
def folder():
    with rigs.short_folder() as name:
        yield Path(name)


@pytest.fixture
def endpoint(request, folder, free_tcp_port):
    """Of the family that the case names, else a Ledger's."""
    match getattr(request, "param", Family.LEDGER):
        case Family.TREZOR:
            return f"trezor:udp:127.0.0.1:{two_free_ports()}"
        case Family.COLDCARD:
            return f"coldcard:unix:{folder / 'coldcard-endpoint.sock'}"
        case _:
            return f"ledger:tcp:127.0.0.1:{free_tcp_port}"


def two_free_ports() -> int:
    """The first of two neighbours: a Trezor's second is for its debug link."""
    while True:
        with socket.socket(type=socket.SOCK_DGRAM) as first, socket.socket(type=socket.SOCK_DGRAM) as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            with suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port


def run_contract(endpoint: str, cases: str, *more: str) -> tuple[Counter[str], str]:
    """The number of cases by outcome, and the output."""
    command = [sys.executable, "-m", "pytest", _SUITE, "--endpoint", endpoint, "-k", cases, *more]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-q"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    said = done.stdout + done.stderr
    return Counter({word: int(count) for count, word in _COUNTS.findall(said.splitlines()[-1])}), said


@WHOLE
@pytest.mark.parametrize("endpoint", drawn(_FAMILIES, 1, of=__name__), indirect=True, ids=str)
def test_the_same_cases_pass_on_a_device_in_a_process_of_its_own(endpoint):
    counted, said = run_contract(endpoint, _CASES)
    assert (counted["passed"], counted["failed"], counted["skipped"]) == (5, 0, 0), said


@WHOLE
def test_a_device_that_does_otherwise_fails(endpoint):
    counted, said = run_contract(
        endpoint, "sign-two-payments", "--hands", "tests.support.wrong_hands:Misreading"
    )
    assert counted["failed"] >= 1, said
    assert counted["passed"] == 0, said


def test_a_device_that_cannot_be_had_is_skipped_with_the_reason():
    there = remote.Remote(Endpoint.parse("ledger:tcp:127.0.0.1:1"), wrong_hands.cannot)
    with pytest.raises(pytest.skip.Exception, match="cannot be had"):
        remote.make_remote_rig(there, Family.LEDGER, rigs.SEEDS[0], None, fake=False)


def test_hands_that_cannot_be_are_named():
    with pytest.raises(pytest.UsageError, match="--hands"):
        remote.factory_of("nowhere")
