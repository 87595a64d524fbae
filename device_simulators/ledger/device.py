"""The virtual Ledger: its port, its app, its faults; the desk behind them does the work."""

import asyncio
from functools import partial

from device_simulators.faults import Faults, Phase
from device_simulators.ledger.apdu import Reply
from device_simulators.ledger.desk import App, Desk
from device_simulators.ledger.errors import Silenced
from device_simulators.ledger.framing import GARBAGE, to_bytes
from device_simulators.ledger.link import Connection, Link
from device_simulators.ledger.wallet import Wallet
from device_simulators.ledger.work import SILENCE_SECONDS, CallLater, Timer
from device_simulators.panel import Panel
from device_simulators.seed import Seed
from firmware_bridge.model import Endpoint, Family
from multisig import Fingerprint, Network

DEFAULT_HOST = "127.0.0.1"
DEFAULT_VERSION = "2.4.6"
"""The app whose behaviour this follows."""


class VirtualLedger:
    """A Ledger with its Bitcoin app open, on a TCP port of this machine. It keeps its seed and nothing else.

    `app_name` and `app_version` may be set anew at any time, as a person may open another app; None is the Bitcoin app
    of the network. `answer_seconds` is what it takes over each answer, for measurements at the pace of hardware. `call_later`
    (by default the event loop's) is the clock by which the app ends itself when its host falls silent in the middle of a command.
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
        self._desk = Desk(
            Wallet(seed, network),
            panel,
            self._app,
            self._strike,
            lambda: self.faults,
            self._start_silence,
        )
        self._link: Link | None = None
        self._silent = False
        self._garble = False

    async def start(self, host: str = DEFAULT_HOST, port: int = 0) -> Endpoint:
        """Listen on `port` (0: any); also plugs in again a device that has vanished or stalled.

        :raises InvalidListenAddress: not an address of this machine only.
        :raises AddressUnavailable: it is taken.
        """
        await self.stop()
        self._silent = self._garble = False
        link = Link(self._on_command)
        address, bound = await link.open(host, port)
        self._link = link
        return Endpoint(Family.LEDGER, f"tcp:{address}:{bound}")

    async def stop(self) -> None:
        """Unplug: the port is closed, the prompt leaves the screen, a command under way is forgotten."""
        link, self._link = self._link, None
        if link is not None:
            # First: what still comes in must find no device, rather than one that has forgotten its command.
            link.close()
        await self._desk.clear()
        if link is not None:
            await link.wait_closed()

    def lock(self) -> None:
        """From now on every command is refused until the person unlocks it; one under way ends so."""
        self._desk.lock()

    def unlock(self) -> None:
        """As if the right PIN had been entered."""
        self._desk.locked = False

    def _start_silence(self) -> Timer:
        call_later = self.call_later or asyncio.get_running_loop().call_later
        return call_later(SILENCE_SECONDS, self._exit_app)

    def _exit_app(self) -> None:
        """THROW(EXCEPTION_IO_RESET) in app_ticker_event_callback: the dashboard comes, and the maker's emulator ends."""
        self._silent = True
        if self._link is not None:
            self._link.close()
        self._desk.drop()

    def _app(self) -> App:
        return App(self.app_name, self.app_version)

    def _on_command(self, raw: bytes, connection: Connection) -> None:
        if self._answer_seconds:
            loop = asyncio.get_running_loop()
            loop.call_later(self._answer_seconds, self._heed, raw, connection, self._link)
        else:
            self._heed(raw, connection, self._link)

    def _heed(self, raw: bytes, connection: Connection, plugged: Link | None) -> None:
        # A command that waited for its time is forgotten by a device that was unplugged meanwhile.
        if not self._silent and plugged is self._link:
            self._desk.heed(raw, partial(self._send, connection))

    def _send(self, connection: Connection, reply: Reply) -> None:
        garble, self._garble = self._garble, False
        connection.send(GARBAGE if garble else to_bytes(reply))
        if garble:
            # After an answer of a wrong length nothing on this connection can be understood any more.
            connection.close()

    def _strike(self, phase: Phase) -> None:
        """Misbehave, if that is due at this phase."""
        if self.faults.vanish_at is phase and self._link is not None:
            self._link.close()
        if phase in {self.faults.vanish_at, self.faults.stall_at}:
            self._silent = True
            raise Silenced
        if self.faults.garbage_at is phase:
            self._garble = True
