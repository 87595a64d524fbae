"""The TCP port of a virtual Ledger. Whoever connects last is served; whoever was before is never answered again.

So does the vendor's emulator. A host that was left behind keeps a connection that stays silent.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from device_simulators.addresses import require_loopback
from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.ledger.framing import Assembler, MalformedStream

MAX_LEFT_BEHIND = 16
"""Of connections beside the one that is served: of more, the oldest are closed."""


class Link:
    """An open port. `receive` is given each whole command of the connection that is served, and that connection."""

    def __init__(self, receive: "Receiver") -> None:
        self._receive = receive
        self._server: asyncio.Server | None = None
        self._connections: OrderedDict[Connection, None] = OrderedDict()
        self._served: Connection | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = False

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; 0 takes a free port. Gives the address.

        :raises InvalidListenAddress: not an address of this machine only: who reaches it talks to a device with a seed.
        :raises AddressUnavailable: it is taken.
        """
        require_loopback(host)
        self._closing = False
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: Connection(self), host, port
            )
        except OverflowError:
            raise InvalidListenAddress(f"there is no port {port}") from None
        except OSError as error:
            raise AddressUnavailable(f"{host}:{port} is taken") from error
        name: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return name

    def close(self) -> None:
        """Close the port and every connection."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.abort()

    async def wait_closed(self) -> None:
        """Wait until every connection is gone, and the operating system has the port back."""
        await self._empty.wait()
        if self._server is not None:
            await self._server.wait_closed()

    def opened(self, connection: "Connection") -> None:
        self._connections[connection] = None
        self._served = connection
        self._empty.clear()
        if self._closing:
            # Accepted before the port was closed, and heard of only now.
            connection.abort()
        if len(self._connections) > 1 + MAX_LEFT_BEHIND:
            next(iter(self._connections)).abort()

    def closed(self, connection: "Connection") -> None:
        """Whoever was left behind before is not served again."""
        self._connections.pop(connection, None)
        if connection is self._served:
            self._served = None
        if not self._connections:
            self._empty.set()

    def received(self, connection: "Connection", command: bytes) -> None:
        if connection is self._served:
            self._receive(command, connection)

    def serves(self, connection: "Connection") -> bool:
        return connection is self._served


class Connection(asyncio.Protocol):
    """One host."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._assembler = Assembler()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._link.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio calls it so
        self._link.closed(self)

    def data_received(self, data: bytes) -> None:
        try:
            commands = self._assembler.feed(data)
        except MalformedStream:
            self.abort()
            return
        for command in commands:
            self._link.received(self, command)

    def pause_writing(self) -> None:
        """A host that does not read its answers is not listened to either."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Nothing is sent to a host that another one has taken the place of."""
        if self._link.serves(self) and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """After what was sent."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


Receiver = Callable[[bytes, Connection], None]
