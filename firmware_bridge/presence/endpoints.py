"""Virtual devices and emulators at fixed addresses, looked up in the kernel's socket tables.

A connection would take a Ledger emulator's only one away from a program that is using it. Whatever is bound
to the address counts as the device; the probe that follows tells whether it is one. The address is asked only
if the tables do not tell and the device is not in use.
"""

import asyncio
import errno
import functools
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from firmware_bridge.makers import maker_of
from firmware_bridge.model import Endpoint, Listing, Sighting
from firmware_bridge.presence.kernel_sockets import (
    CLOSED,
    LISTENING,
    Address,
    InetSocket,
    inet_sockets,
    loopback_hosts,
)

# Emulators on the same machine answer within a millisecond.
_ANSWER_SECONDS: Final = 0.5
_PING: Final = b"PINGPING"
_PONG: Final = b"PONGPONG"


# Of a connection to a socket that is bound: it talks to one other only, is not ours to use, or is a stream.
_BOUND: Final = frozenset({errno.EPERM, errno.EACCES, errno.EPROTOTYPE})


def unix_is_bound(path: str) -> bool:
    """Whether a socket is bound there. Connecting a datagram socket sends nothing."""
    if sys.platform == "win32":
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            return error.errno in _BOUND
        return True


async def udp_answers(host: str, port: int) -> bool:
    """Trezor's emulators answer PINGPING with PONGPONG."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 - the signature is not ours
        try:
            probe.connect((host, port))
            async with asyncio.timeout(_ANSWER_SECONDS):
                await loop.sock_sendall(probe, _PING)
                return await loop.sock_recv(probe, len(_PONG)) == _PONG
        except (OSError, TimeoutError):
            return False


async def tcp_accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            _reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


TABLES: Final = Path("/proc/net")
_CHUNK: Final = 1 << 16
_ASK: Final[Mapping[str, Callable[[str, int], Awaitable[bool]]]] = {
    "udp": udp_answers,
    "tcp": tcp_accepts,
}


@dataclass(frozen=True)
class _Place:
    """An endpoint's parsed address. No `hosts`: it is not on this machine, so that the tables do not tell."""

    endpoint: Endpoint
    hosts: tuple[Address, ...] = ()
    port: int = 0

    @classmethod
    def of(cls, endpoint: Endpoint) -> Self:
        if endpoint.kind not in _ASK:
            return cls(endpoint)
        host, port = host_and_port(endpoint.place)
        return cls(endpoint, loopback_hosts(host), port)


# (kind, IP version) -> the sockets of that table
_Tables = Callable[[str, int], list[InetSocket]]


def _tables_in(folder: str, ports: frozenset[int]) -> _Tables:
    """The socket tables at one moment; each is read at most once, and only if an endpoint needs it."""

    @functools.cache
    def sockets(kind: str, version: int) -> list[InetSocket]:
        try:
            return inet_sockets(_text(f"{folder}/{kind}{'' if version == 4 else '6'}"), ports)
        except FileNotFoundError:
            if version == 4:
                raise
            # A kernel without IPv6.
            return []

    return sockets


def _tells(place: _Place, sockets: _Tables, *, in_use: bool) -> bool | None:
    """Whether a program is bound there, or None if the tables do not tell."""
    kind = place.endpoint.kind
    if kind == "unix":
        return unix_is_bound(place.endpoint.place)
    if kind not in _ASK or (kind == "tcp" and in_use):
        # A TCP emulator may stop listening while it serves its only connection, ours.
        return True
    told = _hears(kind, place, sockets) if place.hosts else None
    return in_use or None if told is None else told


def _hears(kind: str, place: _Place, sockets: _Tables) -> bool | None:
    """The IPv6 table is read only if the IPv4 table does not show the address: most emulators are at
    127.0.0.1.
    """
    wanted = LISTENING if kind == "tcp" else CLOSED
    try:
        return any(
            found.state == wanted and found.port == place.port and found.hears(place.hosts)
            for version in (4, 6)
            for found in sockets(kind, version)
        )
    except OSError:
        return None


def endpoint_listing(endpoints: Sequence[Endpoint], *, tables: Path = TABLES) -> Listing:
    """A listing of virtual devices and emulators at fixed addresses."""
    places = [_Place.of(endpoint) for endpoint in endpoints]
    ports = frozenset(place.port for place in places)

    async def look(in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        sockets = _tables_in(str(tables), ports)
        told = [_tells(place, sockets, in_use=place.endpoint in in_use) for place in places]
        unknown = [place for place, there in zip(places, told, strict=True) if there is None]
        answers = iter(await asyncio.gather(*map(_ask, unknown)) if unknown else ())
        there = [next(answers) if said is None else said for said in told]
        return [_emulator(place.endpoint) for place, is_there in zip(places, there, strict=True) if is_there]

    return look


def _emulator(endpoint: Endpoint) -> Sighting:
    return Sighting(endpoint, f"{maker_of(endpoint.family).name} (emulator)")


async def _ask(place: _Place) -> bool:
    return await _ASK[place.endpoint.kind](*host_and_port(place.endpoint.place))


def _text(path: str) -> str:
    """Read a kernel table, which has no size. Plain system calls, because this runs every few seconds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        chunks = []
        while chunk := os.read(descriptor, _CHUNK):
            chunks.append(chunk)
        return b"".join(chunks).decode(errors="surrogateescape")
    finally:
        os.close(descriptor)


def host_and_port(place: str) -> tuple[str, int]:
    host, _colon, port = place.rpartition(":")
    return host, int(port)
