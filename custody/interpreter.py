"""The interpreters that the programs run on (ADR 24).

An installer may pass over the bound in the package's metadata, as uv does. Then each program says so in one
sentence, before it imports what is missing there.
"""

import sys
from typing import Final

NEWEST: Final = (3, 13)


def require_supported(program: str, version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raises SystemExit, with the line that works."""
    if version > NEWEST:
        raise SystemExit(
            f"{program} runs on Python 3.11 to 3.13, and this is {version[0]}.{version[1]}: install it with "
            "uv tool install --python 3.13 'signerd[desktop]'"
        )
