"""HWI where it is not installed. 3.2.0's metadata refuses Python 3.13 and later, on which its code runs: our
own leaves it out there, and one more line installs it (ADR 24). A Trezor is driven without it.
"""

import shlex
import sys
from importlib.util import find_spec
from typing import Final

from firmware_bridge.model import Family

HWI: Final = "hwi==3.2.0"
# From here on HWI's metadata refuses it.
_REFUSED: Final = (3, 13)


def missing_hwi(family: Family | None = None) -> str | None:
    """What is missing and the line to run, as one sentence; None where HWI is installed, or not needed."""
    if family is Family.TREZOR or find_spec("hwilib") is not None:
        return None
    return f"HWI, which talks to all devices but a Trezor, is not installed here: run {install_line()}"


def install_line() -> str:
    """For this environment: by its pip; one without pip is uv's, and uv ignores the upper bound."""
    python = shlex.quote(sys.executable)
    past = sys.version_info >= _REFUSED
    # The project names what HWI needs among its own requirements.
    alone = " --no-deps" if past else ""
    if find_spec("pip") is None:
        return f"uv pip install --python {python}{alone} {HWI}"
    return f"{python} -m pip install{' --ignore-requires-python' if past else ''}{alone} {HWI}"
