"""How a worker is started: with what this program has, and nothing of what lies around."""

import os
import subprocess
import sys
from pathlib import Path

START = """
import socket
from firmware_bridge.worker import spawn
from tests.support import workers

_ours, theirs = socket.socketpair()
worker = spawn(theirs, "endpoint", "regtest", entry=workers.mute)
print(worker.is_alive())
worker.kill()
"""


def test_nothing_is_imported_from_the_folder_that_the_program_is_in(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("multiprocessing", "socket", "struct"):
        (here / f"{name}.py").write_text("raise SystemExit('somebody else was here')")
    program = tmp_path / "program.py"
    program.write_text(START)
    # Where `tests.support` is found; the tests themselves find it by the folder they are started in.
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
    assert "somebody else" not in done.stderr
