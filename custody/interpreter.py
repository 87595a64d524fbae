"""The interpreters that the programs run on (ADR 24), and how their collector is set.

An installer may pass over the bound in the package's metadata, as uv does. Then each program says so in one
sentence, before it imports what is missing there.
"""

import gc
import sys
from typing import Final

NEWEST: Final = (3, 13)
# Objects made before the collector looks for cycles. Python's 700 make it look through all that a program
# imports while it imports it, a sixth of the time until a server answers.
COLLECT_AFTER: Final = 50_000
_USUAL: Final = gc.get_threshold()


def prepare(program: str) -> None:
    """What each program does first. Raises as ``require_supported``."""
    require_supported(program)
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


def settle() -> None:
    """What a program that stays does once it has started. What is loaded by now is not looked through any
    more: a full collection of all of it would hold every answer up, 200 ms.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL)


def require_supported(program: str, version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raises SystemExit, with the line that works."""
    if version > NEWEST:
        raise SystemExit(
            f"{program} runs on Python 3.11 to 3.13, and this is {version[0]}.{version[1]}: install it with "
            "uv tool install --python 3.13 'signerd[desktop]'"
        )
