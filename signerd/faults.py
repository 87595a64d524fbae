"""Named points at which a test may stop the daemon. In production the hook does nothing.

A point's name is ``<where>:<before|after>:<what>``, for instance ``journal:after:Approved``, ``platform:before:sign_psbt``
or ``device:after:sign``. The crash harness passes a hook that kills the process at the n-th point it is told of.
"""

from collections.abc import Callable

FaultPoint = Callable[[str], None]


def no_fault(_point: str) -> None:
    """Go on."""
