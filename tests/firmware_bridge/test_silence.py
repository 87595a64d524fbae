"""Nothing that HWI prints, and nothing of ours, reaches the terminal; and the caller's program is not run again in a worker."""

import subprocess
import sys

PROGRAM = """
import asyncio, tempfile
from pathlib import Path
from firmware_bridge import Bridge, Family
from tests.support import rigs, wallets
print("the program begins")

async def main():
    vault = rigs.make_vault()
    with tempfile.TemporaryDirectory(prefix="rig") as folder:
        both = [rigs.make_rig(f, Path(folder), seed=s) for f, s in zip(rigs.MAKES, rigs.SEEDS)]
        async with rigs.bridged(*both) as (bridge, devices):
            for device in devices:
                await bridge.enrol(device.id, vault, "Savings")
                await bridge.sign(device.id, wallets.make_spend(vault), vault)
                await bridge.sign_message(device.id, "I am here", rigs.ACCOUNT / "0/0")

asyncio.run(main())
print("the program ends")
"""


def test_a_program_prints_what_it_prints_itself_and_nothing_else(tmp_path, request):
    # Unguarded by `if __name__ == "__main__"`, on purpose: a worker must not run it.
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        env={"PYTHONPATH": str(request.config.rootpath)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "the program begins\nthe program ends\n", "")
