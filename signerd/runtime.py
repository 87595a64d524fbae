"""The daemon as a process: children that end with it, modules it leaves out of its memory, points where a
test may stop it.

A fault point's name is ``<where>:<before|after>:<what>``, for instance ``journal:after:Approved``,
``platform:before:sign_psbt`` or ``device:after:sign``. In production the hook does nothing. The crash harness
passes a hook that kills the process at the n-th point it is told of.
"""

import sys
from collections.abc import Callable

from custody.children import command, passed

__all__ = ["COMMAND_LINES", "TLS", "FaultPoint", "command", "leave_out", "no_fault", "passed"]

# httpx imports its own command line where that can be, and with it a terminal's colours and a highlighter of
# syntax: nine megabytes. It goes without where the import fails.
COMMAND_LINES = ("httpx._main",)
# http.client goes without it where there is none; a private socket needs none, and it takes a tenth of a
# short program.
TLS = ("ssl",)


def leave_out(names: tuple[str, ...]) -> None:
    """Before anything else is imported. An entry of None makes an import fail (Python's reference, "The
    module cache").
    """
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


FaultPoint = Callable[[str], None]


def no_fault(_point: str) -> None:
    """Go on."""
