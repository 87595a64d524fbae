"""``make demo AUTO=1 TOKENS=1``: every part real and in a process of its own,
from nothing to a confirmed transaction, and from there through the life of a token.
"""

import re
import subprocess
import sys

import pytest

from tests.support.processes import said

DEMO_SECONDS = 1800
# The platform and what its operator does (the organisation, the coins, six blocks, a block); three devices,
# three daemons. What a person does beside goes through the libraries: an interpreter takes a second to start.
MAIN_JOB, TOKEN = 11, 7
# The real program, which tells of each program that it starts (Python's reference, "Audit events table").
PROGRAM = """
import sys
def heard(event, told):
    if event == "subprocess.Popen":
        print("started", *map(str, told[1]), flush=True)
sys.addaudithook(heard)
from signerd.cli import main
main()
"""


@pytest.mark.slow("every program as a whole: test_airgap.py tries the same in less")
def test_the_main_job_and_a_token_run_unattended_and_the_confirmed_transaction_id_comes_last():
    command = [sys.executable, "-c", PROGRAM, "demo", "--auto", "--tokens"]
    heard = said(command, seconds=DEMO_SECONDS, stdin=subprocess.DEVNULL)
    *told, txid = heard.splitlines()
    assert re.fullmatch(r"[0-9a-f]{64}", txid)
    # What is compared is the same to the letter: on the page, in the terminal, on each device.
    (address,) = set(re.findall(r"compares the first address (tb1\w+)", heard))
    for device in ("Ledger of the first", "Coldcard of the second", "Trezor of the third"):
        shown = [line for line in told if f"{device} signer shows" in line]
        assert any(address in line for line in shown), shown
    confirmed = next(place for place, line in enumerate(told) if "Confirmed at height" in line)
    # The same transaction: the token's come after it.
    assert any(txid in line for line in told[:confirmed])
    assert any("The vault holds 999.50 GOLD" in line for line in told[confirmed:])
    for part, most in ((told[:confirmed], MAIN_JOB), (told[confirmed:], TOKEN)):
        started = [line for line in part if line.startswith("started")]
        assert 0 < len(started) <= most, "\n".join(started)
