"""The Unix datagram socket that stands for the USB cable."""

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any, Final

from device_simulators.coldcard.limits import PACKET_SIZE
from device_simulators.errors import AddressUnavailable, InvalidListenAddress

# What hosts have not read yet fills the socket's buffer, and a host that is not connected queues some ten datagrams
# only. The firmware too waits for a host that does not read, and then drops what it had to say.
SEND_RETRIES: Final = 2_000
SEND_PAUSE: Final = 0.001  # seconds
CLOSED: Final = -1  # the descriptor of a closed socket


class Link:
    """One bound socket. It answers whoever wrote last; there is no notion of a connection."""

    def __init__(self, path: Path) -> None:
        """Bind, readable by this user only.

        :raises AddressUnavailable: something is there already, or the folder is missing.
        :raises InvalidListenAddress: the path is longer than a Unix socket's may be (107 bytes on Linux).
        """
        self.path = path
        _clear_stale(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        try:
            self._bind()
        except BaseException:
            self._socket.close()
            raise

    def _bind(self) -> None:
        try:
            self._socket.bind(str(self.path))
            self.path.chmod(0o600)
        except FileNotFoundError as error:
            raise AddressUnavailable(f"no such folder: {self.path.parent}") from error
        except PermissionError as error:
            raise AddressUnavailable(f"not allowed to listen at {self.path}") from error
        except OSError as error:  # too long a path, above all
            raise InvalidListenAddress(f"cannot listen at {self.path}: {error}") from error

    async def receive(self) -> tuple[bytes, Any]:
        """The next datagram and its sender. One byte more than a packet is read, so that a longer one shows."""
        return await asyncio.get_running_loop().sock_recvfrom(self._socket, PACKET_SIZE + 1)

    async def send(self, packet: bytes, address: Any) -> bool:
        """Send one packet; False if the host is gone or does not read."""
        if not address:  # a sender without a name cannot be answered
            return False
        for _ in range(SEND_RETRIES):
            try:
                self._socket.sendto(packet, address)
                return True
            except BlockingIOError:
                await asyncio.sleep(SEND_PAUSE)
            except OSError:
                return False
        return False

    def close(self) -> None:
        """Close, and remove the socket's file. Once: what stands there later is another's."""
        if self._socket.fileno() == CLOSED:
            return
        self._socket.close()
        self.path.unlink(missing_ok=True)


def _clear_stale(path: Path) -> None:
    """Remove a socket that nobody listens on any more. Anything else at that path is left alone."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise AddressUnavailable(f"there is a file at {path} that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise AddressUnavailable(f"cannot listen at {path}: {error}") from error
        else:
            raise AddressUnavailable(f"something listens at {path} already")
