"""Fault points of the daemon's process, for tests.

A fault point's name is ``<where>:<before|after>:<what>``, for instance ``journal:after:Approved``,
``platform:before:sign_psbt`` or ``device:after:sign``. In production the hook does nothing. The crash tests
pass one that kills the process at the n-th point.
"""

from collections.abc import Callable

FaultPoint = Callable[[str], None]


def no_fault(_point: str) -> None:
    """Do nothing."""
