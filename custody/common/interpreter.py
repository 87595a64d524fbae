"""The supported Python versions (ADR 24), and the settings of the garbage collector."""

import atexit
import gc
import sys
from pathlib import Path
from typing import Final

NEWEST: Final = (3, 14)
# The newest for which the platform's engine has a wheel.
NEWEST_OF_ENGINE: Final = "3.13"
# New objects before the collector looks for cycles. With Python's 700 it runs again and again during the
# imports, a sixth of the time until a server answers.
COLLECT_AFTER: Final = 500_000
_USUAL: Final = gc.get_threshold()


def prepare(program: str, version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Called first by each program. Raises SystemExit on a newer version, with the command that installs a
    supported one.
    """
    if version > NEWEST:
        newest, this = (".".join(map(str, each)) for each in (NEWEST, version))
        raise SystemExit(
            f"{program} runs on Python 3.11 to {newest}, and this is {this}: "
            f"run {install_line(program, newest)}"
        )
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def settle() -> None:
    """Called by a long-running program once it has started: excludes everything loaded so far from
    collections. A full collection of it would delay every response by 200 ms.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL)


def install_line(program: str, version: str) -> str:
    """By the installer that made this environment, which knows the extras; uv's where none tells itself."""
    if (Path(sys.prefix) / "uv-receipt.toml").exists():
        return f"uv tool upgrade --python {version} signerd"
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx reinstall --python {version} signerd"
    extras = "desktop,server" if program == "custody" else "desktop"
    return f"uv tool install --python {version} 'signerd[{extras}]'"
