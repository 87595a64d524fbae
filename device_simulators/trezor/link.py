"""The two UDP ports of a virtual Trezor: one for hosts, and the next one for the debug link."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from device_simulators.addresses import require_loopback
from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.trezor.work import Peer

_TRIES = 32
"""For two neighbouring free ports, where any will do."""
_LAST_PORT = 65_534

Receiver = Callable[[Peer, bytes], None]


class _Socket(asyncio.DatagramProtocol):
    """Hands datagrams on. ICMP errors of hosts that have gone are of no interest."""

    def __init__(self, receive: Receiver, closed: asyncio.Event) -> None:
        self._receive = receive
        self._closed = closed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio calls it so
        self._closed.set()

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        self._receive((str(addr[0]), addr[1]), data)


class Port:
    """One open socket."""

    def __init__(self, transport: asyncio.DatagramTransport, closed: asyncio.Event) -> None:
        self._transport = transport
        self._closed = closed
        self.address: Peer = transport.get_extra_info("sockname")[:2]

    def send(self, peer: Peer, chunk: bytes) -> None:
        self._transport.sendto(chunk, peer)

    def close(self) -> None:
        self._transport.close()

    async def wait_closed(self) -> None:
        await self._closed.wait()


@dataclass(frozen=True)
class Link:
    """Both ports, open."""

    wire: Port
    debug: Port

    def close(self) -> None:
        self.wire.close()
        self.debug.close()

    async def wait_closed(self) -> None:
        """Wait until the operating system has both ports back."""
        await self.wire.wait_closed()
        await self.debug.wait_closed()


async def open_link(host: str, port: int, on_wire: Receiver, on_debug: Receiver) -> Link:
    """Listen on `port` and the next one; 0 takes two that are free.

    :raises InvalidListenAddress: not an address of this machine only: whoever reaches the debug link presses the buttons.
    :raises AddressUnavailable: one of the two is taken.
    """
    require_loopback(host)
    if not 0 <= port <= _LAST_PORT:
        raise InvalidListenAddress(f"port {port} leaves no room for the debug link on the next one")
    for _ in range(1 if port else _TRIES):
        link = await _try_open(host, port, on_wire, on_debug)
        if link is not None:
            return link
    raise AddressUnavailable(f"{host}:{port} or the port after it is taken")


async def _try_open(host: str, port: int, on_wire: Receiver, on_debug: Receiver) -> Link | None:
    try:
        wire = await _listen(host, port, on_wire)
    except OSError:
        return None
    try:
        debug = await _listen(host, wire.address[1] + 1, on_debug)
    except (OSError, OverflowError):
        wire.close()
        await wire.wait_closed()
        return None
    return Link(wire, debug)


async def _listen(host: str, port: int, receive: Receiver) -> Port:
    closed = asyncio.Event()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Socket(receive, closed), local_addr=(host, port)
    )
    return Port(transport, closed)
