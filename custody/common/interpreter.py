"""The supported Python versions (ADR 24), and the settings of the garbage collector.
On a newer one py-bitcoinkernel is not installed. Each program says so in one sentence, before it imports
anything of it.
"""

import gc
import sys
from pathlib import Path
from typing import Final

NEWEST: Final = (3, 13)
# New objects before the collector looks for cycles. With Python's 700 it runs again and again during the
# imports, a sixth of the time until a server answers.
COLLECT_AFTER: Final = 50_000
_USUAL: Final = gc.get_threshold()


def prepare(program: str, version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Called first by each program. Raises SystemExit on a newer version, with the command that installs a
    supported one.
    """
    if version > NEWEST:
        raise SystemExit(
            f"{program} runs on Python 3.11 to 3.13, and this is {version[0]}.{version[1]}: "
            f"run {_install_line(program)}"
        )
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


def settle() -> None:
    """Called by a long-running program once it has started: excludes everything loaded so far from
    collections. A full collection of it would delay every response by 200 ms.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL)


def _install_line(program: str) -> str:
    """By the installer that made this environment, which knows the extras; uv's where none tells itself."""
    if (Path(sys.prefix) / "uv-receipt.toml").exists():
        return "uv tool upgrade --python 3.13 signerd"
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return "pipx reinstall --python 3.13 signerd"
    extras = "desktop,server" if program == "custody" else "desktop"
    return f"uv tool install --python 3.13 'signerd[{extras}]'"
