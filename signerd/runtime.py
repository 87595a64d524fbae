"""The daemon's process: its child processes, modules that it does not load, and fault points for tests.

A fault point's name is ``<where>:<before|after>:<what>``, for instance ``journal:after:Approved``,
``platform:before:sign_psbt`` or ``device:after:sign``. In production the hook does nothing. The crash tests
pass one that kills the process at the n-th point.
"""

import sys
from collections.abc import Callable

from custody.children import command, passed

__all__ = ["COMMAND_LINES", "TLS", "FaultPoint", "command", "leave_out", "no_fault", "passed"]

# httpx imports its own command line if it can, and with it rich and a syntax highlighter: nine megabytes. It
# works without.
COMMAND_LINES = ("httpx._main",)
# http.client works without it. A private socket needs no TLS, whose import takes a tenth of a short program's
# time.
TLS = ("ssl",)


def leave_out(names: tuple[str, ...]) -> None:
    """Call before any other import. An entry of None makes an import fail (Python's reference, "The module
    cache").
    """
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


FaultPoint = Callable[[str], None]


def no_fault(_point: str) -> None:
    """Do nothing."""
