"""Virtual devices and emulators at fixed addresses: noticed in the kernel's tables, so that they do not notice us.

A ping is traffic, and a connection takes a Ledger emulator's only one away from a signer that is at work. What is bound to
the address is taken for the device; the probe that follows tells whether it is one.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from firmware_bridge.families import VIRTUAL_MODELS
from firmware_bridge.model import Endpoint
from firmware_bridge.presence import asking, sock_diag
from firmware_bridge.presence.kernel_sockets import (
    CLOSED,
    LISTENING,
    InetSocket,
    inet_sockets,
    loopback_hosts,
    unix_paths,
)
from firmware_bridge.sighting import Listing, Sighting

TABLES: Final = Path("/proc/net")
Listening = Callable[[], list[InetSocket]]
_ASK: Final[Mapping[str, Callable[[str, int], Awaitable[bool]]]] = {
    "udp": asking.udp_answers,
    "tcp": asking.tcp_accepts,
}


@dataclass
class _Reading:
    """The tables as they are at one moment; each is read at most once, and only if an endpoint of its kind is looked for."""

    tables: Path
    listening: Listening
    ports: frozenset[int]
    _read: dict[str, list[InetSocket]] = field(default_factory=dict)
    _paths: frozenset[str] | None = None

    def hears(self, kind: str, place: str) -> bool | None:
        """Whether somebody is bound to it, or None where the tables do not tell."""
        host, port = host_and_port(place)
        hosts = loopback_hosts(host)
        if not hosts:
            return None
        try:
            sockets = self._sockets(kind)
        except OSError:
            return None
        wanted = LISTENING if kind == "tcp" else CLOSED
        return any(s.state == wanted and s.port == port and s.hears(hosts) for s in sockets)

    def binds(self, path: str) -> bool:
        if not os.path.exists(path):  # noqa: PTH110 - a Path costs more than the question
            return False
        if self._paths is None:
            try:
                self._paths = unix_paths((self.tables / "unix").read_text(errors="replace"))
            except OSError:
                self._paths = frozenset()
        # A path that was bound from inside its folder is in the table without the folder.
        return path in self._paths or asking.unix_is_bound(path)

    def _sockets(self, kind: str) -> list[InetSocket]:
        if kind not in self._read:
            self._read[kind] = self._tcp() if kind == "tcp" else self._table(kind)
        return self._read[kind]

    def _tcp(self) -> list[InetSocket]:
        try:
            return self.listening()
        except (OSError, AttributeError):
            # No such question on this kernel, or no such sockets in this Python.
            return self._table("tcp")

    def _table(self, kind: str) -> list[InetSocket]:
        found = inet_sockets((self.tables / kind).read_text(), self.ports)
        six = self.tables / f"{kind}6"
        # A kernel without IPv6 has no such table.
        return [*found, *inet_sockets(six.read_text(), self.ports)] if six.exists() else found


def endpoint_listing(
    endpoints: Sequence[Endpoint], *, tables: Path = TABLES, listening: Listening = sock_diag.listening
) -> Listing:
    """Looks after virtual devices and emulators at fixed addresses."""
    ports = frozenset(host_and_port(e.place)[1] for e in endpoints if e.kind in {"udp", "tcp"})

    async def look(in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        reading = _Reading(tables, listening, ports)
        answers = await asyncio.gather(*(_is_there(endpoint, in_use, reading) for endpoint in endpoints))
        return [_virtual(endpoint) for endpoint, there in zip(endpoints, answers, strict=True) if there]

    return look


def _virtual(endpoint: Endpoint) -> Sighting:
    return Sighting(endpoint, VIRTUAL_MODELS.get(endpoint.family, str(endpoint.family)))


async def _is_there(endpoint: Endpoint, in_use: Collection[Endpoint], reading: _Reading) -> bool:
    if endpoint.kind == "unix":
        return reading.binds(endpoint.place)
    if endpoint.kind == "tcp" and endpoint in in_use:
        # It may have stopped listening while it serves the one connection that it has: ours.
        return True
    ask = _ASK.get(endpoint.kind)
    if ask is None:
        return True
    told = reading.hears(endpoint.kind, endpoint.place)
    if told is not None:
        return told
    return endpoint in in_use or await ask(*host_and_port(endpoint.place))


def host_and_port(place: str) -> tuple[str, int]:
    host, _colon, port = place.rpartition(":")
    return host, int(port)
