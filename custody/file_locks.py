"""A lock on an open file, which the system releases when the process ends, however it ends."""

import os
import sys

if sys.platform == "win32":
    import msvcrt

    def take(file: int, *, shared: bool = False) -> None:  # noqa: ARG001 - the other system's has it
        """Raises OSError where another process holds it. Windows has no shared locks: it is exclusive."""
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def take(file: int, *, shared: bool = False) -> None:
        """Raises OSError where another process holds it."""
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
