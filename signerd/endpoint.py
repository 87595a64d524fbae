"""Where the daemon's socket stands, and whether what stands there may be believed. Both sides ask."""

import os
import stat
from pathlib import Path

from signerd.errors import DaemonNotRunning, UnsafeFolder

SOCKET = "signerd.sock"
# The only name by which the daemon is called; an http URL must have one.
HOST = "signerd"
# Where the page is entered, with a code that the socket gave out.
ENTER = "/enter"
LEAVE = "/leave"
# Where the page follows what happens.
EVENTS = "/v1/events"


def socket_path(state: Path) -> Path:
    return state / SOCKET


def trusted_socket(state: Path) -> Path:
    """The socket, where only this user can have made it: a password may be sent to it (L12).

    Raises:
        DaemonNotRunning: there is none. UnsafeFolder: a link, another owner, or a folder that others can enter.
    """
    path = socket_path(state)
    try:
        folder, found = state.lstat(), path.lstat()
    except FileNotFoundError:
        raise DaemonNotRunning(f"no signerd serves {path}") from None
    except OSError as error:
        raise UnsafeFolder(f"{path} cannot be reached: {error.strerror}") from error
    if not stat.S_ISDIR(folder.st_mode):
        raise UnsafeFolder(f"{state} is not a folder, or is a link to one")
    if folder.st_uid != os.getuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        raise UnsafeFolder(f"{state} belongs to another user, or is open to others")
    require_own_socket(path, found)
    return path


def require_own_socket(path: Path, found: os.stat_result) -> None:
    """Raises UnsafeFolder."""
    if not stat.S_ISSOCK(found.st_mode):
        raise UnsafeFolder(f"{path} is not a socket, or is a link to one")
    if found.st_uid != os.getuid():
        raise UnsafeFolder(f"{path} belongs to another user")
