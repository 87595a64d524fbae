"""What goes wrong in the demo is told, every part real as in the one that goes well; and nothing outlives
it.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.rigs import short_folder
from tests.support.descendants import needs_proc, until_gone

DEMO_SECONDS = 1800
PATIENCE_SECONDS = 120


@pytest.mark.slow("every program as a whole: test_with_platform.py tries the same in less")
@needs_proc
def test_what_goes_wrong_is_told_and_a_kill_takes_every_program_along(
    tmp_path: Path,
) -> None:
    """Nothing is confirmed, and everything runs until the demo is killed: the platform, the devices, the
    daemons, their device workers and the fork servers of those.
    """
    file = tmp_path / "asked"
    reading, writing = os.pipe()
    with short_folder() as folder, os.fdopen(reading) as somebody, os.fdopen(writing, "w"):
        done = subprocess.run(
            [sys.executable, "-u", "-m", "tests.support.failing_demo", file],
            stdin=somebody,
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": folder},
            timeout=DEMO_SECONDS,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
        told = json.loads(file.read_text())
        until_gone(*map(int, told["family"]), seconds=PATIENCE_SECONDS)
    for part in ("custody.server serve", "device virtual", "signerd run", "multiprocessing.forkserver"):
        assert [command for command in told["family"].values() if part in command], (part, told["family"])
    approve, again = "You are the first signer. Approve? [y/n]", "Try it again? [Y/n]"
    assert told["asked"] == [approve, again, approve, again, "q or Ctrl-C: stop everything."]
    first, second = [line for line in done.stdout.splitlines() if line.startswith("Not done:")]
    assert "refused on the device" in first
    assert "not pinned" in second
    assert "Confirmed" not in done.stdout
