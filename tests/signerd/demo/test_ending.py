"""However the demo ends, nothing that it started outlives it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signerd.demo import story
from tests.conformance.rigs import short_folder
from tests.support.examples import drawn

PATIENCE_SECONDS = 120


def programs_of(folder: str) -> list[int]:
    """Every process that was given this folder, on its command line or in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            given = process.joinpath("cmdline").read_bytes() + process.joinpath("environ").read_bytes()
        except OSError:
            continue
        if folder.encode() in given:
            found.append(int(process.name))
    return found


@pytest.mark.slow("every program as a whole: test_with_platform.py tries the same in less")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system does not list its processes")
@pytest.mark.parametrize("ending", drawn([signal.SIGTERM, signal.SIGHUP], 1, of=__name__))
def test_a_signal_ends_every_program(ending: signal.Signals) -> None:
    with (
        short_folder() as folder,
        subprocess.Popen(
            [sys.executable, "-u", "-m", "signerd", "demo", "--auto"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": folder},
        ) as demo,
    ):
        assert demo.stdout is not None
        try:
            assert next((line for line in demo.stdout if "is switched on" in line), None) is not None
            (root,) = Path(folder).glob("signerd-demo-*")
            assert programs_of(str(root))
            demo.send_signal(ending)
            _out, err = demo.communicate(timeout=PATIENCE_SECONDS)
        finally:
            demo.kill()
        assert demo.returncode == story.EXIT_TERMINATED
        assert str(root) in err
        assert programs_of(str(root)) == []
