"""The private Unix socket: it stands in the state folder, which must be private, and nobody else can open it (L12)."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from signerd.endpoint import require_own_socket, socket_path
from signerd.errors import SocketUnusable
from signerd.journal.folder import PRIVATE_FILE, make_private

# sockaddr_un's sun_path is 108 bytes on Linux and 104 on macOS, with its closing zero.
MAX_SOCKET_PATH = 103
BACKLOG = 64


@contextlib.contextmanager
def private_socket(state: Path) -> Iterator[socket.socket]:
    """A listening socket of mode 0600 in the private state folder, which the caller holds; removed at the end.

    Raises:
        UnsafeFolder: the folder, or what is in the socket's place, is not ours alone. SocketUnusable: it cannot be
        made here.
    """
    make_private(state)
    path = socket_path(state)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise SocketUnusable(
            f"{path} is longer than the {MAX_SOCKET_PATH} bytes that a socket's path may have"
        )
    _remove_leftover(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the socket: it is never open to others, not even for a moment.
        os.fchmod(listening.fileno(), PRIVATE_FILE)
        listening.bind(str(path))
        path.chmod(PRIVATE_FILE)
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError as error:
        listening.close()
        raise SocketUnusable(f"{path} cannot be made: {error.strerror}") from error
    try:
        yield listening
    finally:
        listening.close()
        path.unlink(missing_ok=True)


def _remove_leftover(path: Path) -> None:
    """A daemon that was killed leaves its socket behind; anything else in its place is not ours to remove."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    require_own_socket(path, found)
    path.unlink()
