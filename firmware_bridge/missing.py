"""HWI where it is not installed. 3.2.0's metadata refuses Python 3.13 and later, on which its code runs: an
installer that heeds it leaves HWI out, and one more line brings it (ADR 24).
"""

import shlex
import sys
from importlib.util import find_spec
from typing import Final

HWI: Final = "hwi==3.2.0"
# From here on HWI's metadata refuses it.
_REFUSED: Final = (3, 13)


def missing_hwi() -> str | None:
    """What is missing and the line to run, as one sentence; None where HWI is installed. Imports nothing."""
    if find_spec("hwilib") is not None:
        return None
    return f"HWI, which talks to the devices, is not installed here: run {install_line()}"


def install_line() -> str:
    """For this environment: by its own pip, else, as in an environment of uv's, by uv's."""
    if sys.version_info < _REFUSED:
        return f"{_installer()} install {HWI}"
    # The project names what HWI needs among its own requirements.
    return f"{_installer()} install --ignore-requires-python --no-deps {HWI}"


def _installer() -> str:
    python = shlex.quote(sys.executable)
    return f"{python} -m pip" if find_spec("pip") is not None else f"uvx pip --python {python}"
