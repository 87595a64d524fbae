"""The link to a Coldcard: HID or a simulator's Unix socket, and uploads."""

import math
import socket
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import hid

from firmware_bridge.hwi_client.coldcard import library
from firmware_bridge.model import Endpoint

# How soon it is noticed that a simulator has gone.
_LIVENESS_SECONDS: Final = 0.5


class UnixPipe(library.UnixSimulatorPipe):  # type: ignore[misc]  # HWI is untyped
    """The simulator's socket at any path. ckcc builds the reply socket's name from that path, and it may not
    exist.
    """

    socket_path: str
    pipe_name: str
    pipe: socket.socket

    def __init__(self, path: str) -> None:
        if sys.platform != "linux":
            raise OSError("a simulator's socket needs Linux")
        self.socket_path, self.pipe_name = path, ""
        self.pipe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            # An abstract name: no file that another user could prepare, or that a kill would leave behind.
            self.pipe.bind("")
            self.pipe.connect(path)
        except OSError:
            self.close()
            raise

    def read(self, max_count: int, timeout_ms: int | None = None) -> bytes | None:
        """As ckcc's, but raises if the simulator's socket was closed, which datagrams do not tell."""
        left = math.inf if not timeout_ms else timeout_ms / 1000
        while left > 0:
            wait = min(left, _LIVENESS_SECONDS)
            self.pipe.settimeout(wait)
            try:
                return self.pipe.recv(max_count)
            except TimeoutError:
                left -= wait
                self._require_listener()
        return None

    def _require_listener(self) -> None:
        if sys.platform == "win32":
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(self.socket_path)

    def close(self) -> None:
        self.pipe.close()


def connect(endpoint: Endpoint) -> Any:
    """The connection, as ckcc expects it."""
    if endpoint.kind == "unix":
        return UnixPipe(endpoint.place)
    device = hid.device()
    device.open_path(endpoint.place.encode())
    return device


# How often progress is reported: about every quarter of a second on a Mk4.
_TELL_EVERY: Final = 16 * library.MAX_BLK_LEN


def upload(ckcc: Any, content: bytes, on_sent: Callable[[int], None]) -> tuple[int, bytes]:
    """Upload a file. Returns its length and SHA-256. `on_sent` is called with the bytes sent so far, and may
    raise to stop.

    :raises RuntimeError: the device received something else.
    """
    for at in range(0, len(content), library.MAX_BLK_LEN):
        if at % _TELL_EVERY == 0:
            on_sent(at)
        ckcc.send_recv(library.Packer.upload(at, len(content), content[at : at + library.MAX_BLK_LEN]))
    digest = sha256(content).digest()
    if ckcc.send_recv(library.Packer.sha256()) != digest:
        raise RuntimeError("the device received another file than was sent")
    return len(content), digest
