"""Programs that are run to their end."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Command = Sequence[str | Path]


def ended(command: Command, *, seconds: float = 300, **given: Any) -> subprocess.CompletedProcess[str]:
    """``given``: further arguments of ``subprocess.run``."""
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **given)


def said(command: Command, **given: Any) -> str:
    """The standard output of one that succeeds."""
    done = ended(command, **given)
    assert done.returncode == 0, (command, done.stdout[-2_000:], done.stderr[-6_000:])
    return done.stdout
