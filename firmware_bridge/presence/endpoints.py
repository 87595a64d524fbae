"""Virtual devices and emulators at fixed addresses, noticed without sending them anything.

A connection would take a Ledger emulator's only one away from a program that is using it, and a packet a
Trezor's reply. So on this machine the kernel is asked whether the address is free: whatever has it counts as
the device, and the probe that follows tells whether it is one. Elsewhere the address itself is asked, unless
the device is in use.
"""

import asyncio
import errno
import socket
import sys
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Endpoint, Listing, Sighting

Address = IPv4Address | IPv6Address
_LOOPBACK: Final[tuple[Address, ...]] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
# Emulators in the same network answer within a fraction of this.
_ANSWER_SECONDS: Final = 0.5
_PING: Final = b"PINGPING"
_PONG: Final = b"PONGPONG"
# Of a connection to a socket that is bound: it talks to one other only, is not ours to use, or is a stream.
_BOUND: Final = frozenset({errno.EPERM, errno.EACCES, errno.EPROTOTYPE})


def endpoint_listing(endpoints: Sequence[Endpoint]) -> Listing:
    """A listing of virtual devices and emulators at fixed addresses."""

    async def look(in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        there = await asyncio.gather(*(_is_there(endpoint, endpoint in in_use) for endpoint in endpoints))
        return [
            Sighting(endpoint, MAKERS[endpoint.family].name)
            for endpoint, is_there in zip(endpoints, there, strict=True)
            if is_there
        ]

    return look


async def _is_there(endpoint: Endpoint, in_use: bool) -> bool:
    if endpoint.kind == "unix":
        return unix_is_bound(endpoint.place)
    if endpoint.kind not in {"udp", "tcp"} or (endpoint.kind == "tcp" and in_use):
        # A TCP emulator may stop listening while it serves its only connection, ours.
        return True
    host, port = host_and_port(endpoint.place)
    hosts = loopback_hosts(host) if sys.platform == "linux" else ()
    if hosts:
        return any(is_bound(endpoint.kind, address, port) for address in hosts)
    return in_use or await (udp_answers if endpoint.kind == "udp" else tcp_accepts)(host, port)


def is_bound(kind: str, address: Address, port: int) -> bool:
    """Whether a program on this machine has the address (of TCP: listens there): then it cannot be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as probe:
        if kind == "tcp":
            # Connections that have ended, and those of the last listener, do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(address), port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
        return False


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


def loopback_hosts(host: str) -> tuple[Address, ...]:
    """The loopback addresses that `host` may mean; none if it is another machine."""
    if host == "localhost":
        return _LOOPBACK
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return ()
    return (address,) if address.is_loopback else ()


def host_and_port(place: str) -> tuple[str, int]:
    host, _colon, port = place.rpartition(":")
    return host, int(port)
