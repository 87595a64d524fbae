"""Where the daemon is called, and as whom: its private socket, as the person; or TCP on this machine, as an app."""

import contextlib
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx

from signerd.endpoint import HOST, PREFIX, trusted_socket
from signerd.errors import DaemonFailed, DaemonNotRunning, InvalidRequest

CONNECT_SECONDS = 5.0
# Numbers alone: a name is looked up, and what answers may lie.
_ADDRESS = re.compile(r"http://(?P<host>127\.0\.0\.1|\[::1\]):(?P<port>[0-9]{1,5})/?")
MAX_PORT = 65_535


@dataclass(frozen=True)
class DaemonAddress:
    """``url``: up to the host and port. ``socket``: None over TCP."""

    url: str
    socket: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of_folder(cls, state: Path) -> Self:
        """Raises DaemonNotRunning, UnsafeFolder: nothing is sent to a socket that somebody else could have made (L12)."""
        return cls(f"http://{HOST}", trusted_socket(state))

    @classmethod
    def of_address(cls, url: str, token: str | None) -> Self:
        """Raises InvalidRequest for anything but a port of this machine: a token goes nowhere else (L10)."""
        found = _ADDRESS.fullmatch(url)
        if found is None or int(found["port"]) > MAX_PORT:
            raise InvalidRequest(
                f"'{url}' is not an address of the daemon",
                hint="It is http://127.0.0.1 or http://[::1] with a port, as `signerd status` tells it.",
            )
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return cls(f"http://{found['host']}:{found['port']}", headers=headers)

    @property
    def base(self) -> str:
        return self.url + PREFIX

    def __str__(self) -> str:
        return self.url if self.socket is None else str(self.socket)

    def require_answering(self) -> None:
        """Tells a dead daemon's socket from a live one's; httpcore would leave its own attempt open.

        Raises:
            DaemonNotRunning: nobody listens.
        """
        if self.socket is None:
            return
        with socket.socket(socket.AF_UNIX) as attempt:
            attempt.settimeout(CONNECT_SECONDS)
            try:
                attempt.connect(str(self.socket))
            except OSError as error:
                raise DaemonNotRunning(f"no signerd answers at {self}: {error.strerror}") from None

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """What the connection raises, in our own words."""
        try:
            yield
        except httpx.ConnectError:
            raise DaemonNotRunning(f"no signerd answers at {self}") from None
        except httpx.TimeoutException:
            raise DaemonFailed("the daemon gave no answer in time") from None
        except httpx.TransportError as error:
            raise DaemonFailed(f"the connection to the daemon ended early: {error}") from None


def timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=CONNECT_SECONDS)
