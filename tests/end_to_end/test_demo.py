"""``make demo AUTO=1``: every part real and in a process of its own,
from nothing to a confirmed transaction.
"""

import re
import subprocess
import sys

DEMO_SECONDS = 1800


def test_the_main_job_runs_unattended_and_prints_the_confirmed_transaction_id_last():
    ran = subprocess.run(
        [sys.executable, "-m", "signerd", "demo", "--auto"],
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
    (address,) = re.search(r"compares the first address (bcrt1\w+)", ran.stdout).groups()
    # What a device calls testnet: the same program, with another prefix and so another checksum.
    program = address.removeprefix("bcrt1")[:-6]
    for device in ("Ledger of the first", "Coldcard of the second", "Trezor of the third"):
        shown = [line for line in ran.stdout.splitlines() if f"{device} signer shows" in line]
        assert any(program in "".join(line.split()).replace("/", "") for line in shown), shown
