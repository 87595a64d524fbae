"""The lock of the one server that has a state folder's embedded chain."""

import fcntl
import os
from pathlib import Path


def is_served(state: Path) -> bool:
    """Whether a server with an embedded chain runs on this folder."""
    descriptor = open_lock(state)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def open_lock(state: Path) -> int:
    return os.open(state / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
