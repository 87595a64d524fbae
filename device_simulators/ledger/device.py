"""A virtual Ledger at a TCP port: its app and its faults; `dispatch` does the work.

As at the vendor's emulator, the host that connects last is served. The connections of earlier hosts stay open
and silent.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from device_simulators.errors import AddressUnavailable, InvalidListenAddress, require_loopback
from device_simulators.faults import Faults, Misbehaviour
from device_simulators.ledger.apdu import GARBAGE, ApduReply, CommandAssembler, MalformedStream, to_bytes
from device_simulators.ledger.dispatch import LedgerDispatcher, SimulatedApp
from device_simulators.ledger.wallet import LedgerWallet
from device_simulators.ledger.work import SILENCE_SECONDS, CallLater, Timer
from device_simulators.panel import Panel
from device_simulators.seed import Seed
from firmware_bridge.model import Endpoint, Family
from multisig import Fingerprint, Network

MAX_LEFT_BEHIND = 16
"""Of connections beside the one that is served: of more, the oldest are closed."""


class LedgerPort:
    """An open port. `receive` is given each whole command of the connection that is served, and that
    connection.
    """

    def __init__(self, receive: "Receiver") -> None:
        self._receive = receive
        self._server: asyncio.Server | None = None
        self._connections: OrderedDict[HostConnection, None] = OrderedDict()
        self._served: HostConnection | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = False

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; 0 takes a free port. Gives the address.

        :raises InvalidListenAddress: not an address of this machine only, and the device has a seed.
        :raises AddressUnavailable: it is taken.
        """
        require_loopback(host)
        self._closing = False
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: HostConnection(self), host, port
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

    def opened(self, connection: "HostConnection") -> None:
        self._connections[connection] = None
        self._served = connection
        self._empty.clear()
        if self._closing:
            # Accepted before the port was closed, and heard of only now.
            connection.abort()
        if len(self._connections) > 1 + MAX_LEFT_BEHIND:
            next(iter(self._connections)).abort()

    def closed(self, connection: "HostConnection") -> None:
        """A host that was left behind before is not served again."""
        self._connections.pop(connection, None)
        if connection is self._served:
            self._served = None
        if not self._connections:
            self._empty.set()

    def received(self, connection: "HostConnection", command: bytes) -> None:
        if connection is self._served:
            self._receive(command, connection)

    def serves(self, connection: "HostConnection") -> bool:
        return connection is self._served


class HostConnection(asyncio.Protocol):
    """One host."""

    def __init__(self, link: LedgerPort) -> None:
        self._link = link
        self._assembler = CommandAssembler()
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
        """Nothing is sent to a host whose place another one has taken."""
        if self._link.serves(self) and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """After what was sent."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


Receiver = Callable[[bytes, HostConnection], None]


DEFAULT_HOST = "127.0.0.1"
DEFAULT_VERSION = "2.4.6"
"""The app whose behaviour this follows."""


class VirtualLedger:
    """A Ledger with its Bitcoin app open, on a TCP port of this machine. It keeps its seed and nothing else.

    `app_name` and `app_version` may be changed at any time, as a person may open another app; None is the
    Bitcoin app of the network. `answer_seconds` is what it takes over each answer, for measurements at the
    pace of hardware. `call_later` (by default the event loop's) is the clock by which the app ends itself
    when its host falls silent in the middle of a command.
    """

    def __init__(
        self,
        seed: Seed,
        panel: Panel,
        network: Network,
        *,
        faults: Faults | None = None,
        app_name: str | None = None,
        app_version: str = DEFAULT_VERSION,
        answer_seconds: float = 0.0,
        call_later: CallLater | None = None,
    ) -> None:
        self.panel = panel
        self.faults = faults or Faults()
        self.fingerprint: Fingerprint = seed.fingerprint
        self.app_name = app_name or ("Bitcoin" if network is Network.MAINNET else "Bitcoin Test")
        self.app_version = app_version
        self._answer_seconds = answer_seconds
        self.call_later = call_later
        self._misbehaviour = Misbehaviour(lambda: self.faults, self._close_link)
        self._dispatcher = LedgerDispatcher(
            LedgerWallet(seed, network),
            panel,
            self._app,
            self._misbehaviour,
            self._start_silence,
        )
        self._link: LedgerPort | None = None

    async def start(self, host: str = DEFAULT_HOST, port: int = 0) -> Endpoint:
        """Listen on `port` (0: any); also plugs in again a device that has vanished or stalled.

        :raises InvalidListenAddress: not an address of this machine only.
        :raises AddressUnavailable: it is taken.
        """
        await self.stop()
        self._misbehaviour.start_over()
        link = LedgerPort(self._on_command)
        address, bound = await link.open(host, port)
        self._link = link
        return Endpoint(Family.LEDGER, f"tcp:{address}:{bound}")

    async def stop(self) -> None:
        """Unplug: the port is closed, the prompt leaves the screen, a command under way is forgotten."""
        link, self._link = self._link, None
        if link is not None:
            # First: what still comes in must find no device, rather than one that has forgotten its command.
            link.close()
        await self._dispatcher.clear()
        if link is not None:
            await link.wait_closed()

    def lock(self) -> None:
        """From now on every command is refused until the person unlocks it; one under way ends so."""
        self._dispatcher.lock()

    def unlock(self) -> None:
        """As if the right PIN had been entered."""
        self._dispatcher.locked = False

    def _start_silence(self) -> Timer:
        call_later = self.call_later or asyncio.get_running_loop().call_later
        return call_later(SILENCE_SECONDS, self._exit_app)

    def _exit_app(self) -> None:
        """THROW(EXCEPTION_IO_RESET) in app_ticker_event_callback: the dashboard comes, and the maker's
        emulator ends.
        """
        self._misbehaviour.silent = True
        self._close_link()
        self._dispatcher.drop()

    def _app(self) -> SimulatedApp:
        return SimulatedApp(self.app_name, self.app_version)

    def _on_command(self, raw: bytes, connection: HostConnection) -> None:
        if self._answer_seconds:
            loop = asyncio.get_running_loop()
            loop.call_later(self._answer_seconds, self._heed, raw, connection, self._link)
        else:
            self._heed(raw, connection, self._link)

    def _heed(self, raw: bytes, connection: HostConnection, plugged: LedgerPort | None) -> None:
        # A command that waited for its time is forgotten by a device that was unplugged meanwhile.
        if not self._misbehaviour.silent and plugged is self._link:
            self._dispatcher.handle(raw, partial(self._send, connection))

    def _send(self, connection: HostConnection, reply: ApduReply) -> None:
        garble = self._misbehaviour.take_garbage()
        connection.send(GARBAGE if garble else to_bytes(reply))
        if garble:
            # After an answer of a wrong length nothing on this connection can be understood any more.
            connection.close()

    def _close_link(self) -> None:
        if self._link is not None:
            self._link.close()
