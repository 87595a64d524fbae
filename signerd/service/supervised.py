"""The daemon under systemd: socket activation (sd_listen_fds(3)) and notification (sd_notify(3)).

Both are configured by environment variables, and do nothing without them.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import dataclass
from typing import Final, Self

from signerd.errors import SocketUnusable, system_errors
from signerd.runtime import alongside

_FIRST: Final = 3
# Twice as often as required.
_PART: Final = 2
_MICROSECONDS: Final = 1_000_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Supervisor:
    """``address``: its notification socket, if any. ``watchdog_seconds``: its watchdog timeout, if any.
    ``listening``: the socket that it passed, if any.
    """

    address: str | None = None
    watchdog_seconds: float | None = None
    listening: socket.socket | None = None

    @classmethod
    def taken(cls, environment: MutableMapping[str, str], pid: int) -> Self:
        """Removes the variables, so that no child inherits them. Raises SocketUnusable."""
        names = (
            "NOTIFY_SOCKET",
            "WATCHDOG_USEC",
            "WATCHDOG_PID",
            "LISTEN_PID",
            "LISTEN_FDS",
            "LISTEN_FDNAMES",
        )
        address, microseconds, watched, heir, count, _names = (environment.pop(name, None) for name in names)
        waits = microseconds is not None and microseconds.isdigit() and watched in {None, str(pid)}
        return cls(
            address or None,
            int(microseconds) / _MICROSECONDS if waits and microseconds is not None else None,
            _handed_over(count) if heir == str(pid) else None,
        )

    def tell(self, state: str) -> None:
        """``state``: as in sd_notify(3). A failure is only logged."""
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            try:
                sender.setblocking(False)  # noqa: FBT003 - the standard library's signature
                sender.sendto(state.encode(), address)
            except OSError as error:
                _log.warning("cannot notify the service manager of '%s': %s", state, error)

    @contextlib.asynccontextmanager
    async def notified(self) -> AsyncIterator[None]:
        """Notify that the daemon is ready, that its loop is alive during the body, and that it stops."""
        self.tell("READY=1")
        try:
            async with alongside(self._alive()) if self.watchdog_seconds else contextlib.nullcontext():
                yield
        finally:
            self.tell("STOPPING=1")

    async def _alive(self) -> None:
        assert self.watchdog_seconds is not None, "notified() asks before"
        while True:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_seconds / _PART)


def _handed_over(count: str | None) -> socket.socket | None:
    """Raises SocketUnusable for more than the one socket of the unit."""
    if not count or count == "0":
        return None
    if count != "1":
        raise SocketUnusable(
            f"the service manager passes {count} sockets, and signerd takes one",
            hint="Use the socket unit that `signerd service install` writes.",
        )
    os.set_inheritable(_FIRST, False)  # noqa: FBT003 - the standard library's signature
    with system_errors(SocketUnusable, "the service manager passes no valid socket"):
        return socket.socket(fileno=_FIRST)
