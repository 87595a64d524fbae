"""How a Coldcard is reached: HID, or the Unix socket of a simulator or a virtual device."""

import math
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import hid
from hwilib.devices.ckcc.client import UnixSimulatorPipe

from firmware_bridge.model import Endpoint

# How soon it is noticed that nobody is at the other end of a simulator's socket any more.
_LIVENESS_SECONDS: Final = 0.5
_ABSTRACT_NAMES: Final = sys.platform.startswith("linux")


class UnixPipe(UnixSimulatorPipe):  # type: ignore[misc]  # HWI is untyped
    """The simulator's socket at any path. ckcc's own name for the reply socket is built from that path and may not exist."""

    def __init__(self, path: str) -> None:
        self.socket_path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.pipe_name = ""
        self.pipe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self.pipe.bind(self._own_name())
            self.pipe.connect(path)
        except OSError:
            self.close()
            raise

    def _own_name(self) -> str:
        if _ABSTRACT_NAMES:
            # The kernel picks an abstract name: no file that another user could prepare, none left behind by a kill.
            return ""
        self._folder = tempfile.TemporaryDirectory()
        self.pipe_name = str(Path(self._folder.name) / "s")
        return self.pipe_name

    def read(self, max_count: int, timeout_ms: int | None = None) -> bytes | None:
        """As ckcc's, but nobody's answer is awaited from a socket that is closed: datagrams do not tell."""
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
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(self.socket_path)

    def close(self) -> None:
        self.pipe.close()
        if self._folder is not None:
            self._folder.cleanup()


def connect(endpoint: Endpoint) -> Any:
    """What ckcc takes for its device."""
    if endpoint.kind == "unix":
        return UnixPipe(endpoint.place)
    device = hid.device()
    device.open_path(endpoint.place.encode())
    return device
