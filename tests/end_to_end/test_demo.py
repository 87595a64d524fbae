"""``make demo AUTO=1``: every part real and in a process of its own,
from nothing to a confirmed transaction.
"""

import re
import subprocess
import sys

import pytest

DEMO_SECONDS = 1800
# The platform and what its operator does (the organisation, the coins, six blocks, a block); three devices,
# three daemons. What a person does beside goes through the libraries: an interpreter takes a second to start.
MAIN_JOB, TOKEN = 11, 7
# The real program, which tells of each program that it starts (Python's reference, "Audit events table").
PROGRAM = """
import sys
def heard(event, told):
    if event == "subprocess.Popen":
        print("started", *map(str, told[1]), file=sys.stderr)
sys.addaudithook(heard)
from signerd.cli import main
main()
"""


@pytest.mark.parametrize(("arguments", "most"), [((), MAIN_JOB), (("--tokens",), MAIN_JOB + TOKEN)])
def test_the_main_job_runs_unattended_and_prints_the_confirmed_transaction_id_last(arguments, most):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "demo", "--auto", *arguments],
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.fullmatch(r"[0-9a-f]{64}", ran.stdout.splitlines()[-1])
    assert "Coldcard of the second signer shows" in ran.stdout
    assert "Ledger of the first signer shows" in ran.stdout
    assert ("The vault holds 999.50 GOLD" in ran.stdout) is ("--tokens" in arguments)
    # What is compared is the same to the letter: on the page, in the terminal, on each device.
    (address,) = set(re.findall(r"compares the first address (tb1\w+)", ran.stdout))
    for device in ("Ledger of the first", "Coldcard of the second", "Trezor of the third"):
        shown = [line for line in ran.stdout.splitlines() if f"{device} signer shows" in line]
        assert any(address in line for line in shown), shown
    started = [line for line in ran.stderr.splitlines() if line.startswith("started")]
    assert 0 < len(started) <= most, "\n".join(started)
