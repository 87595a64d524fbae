"""The played device: what it remembers, its screen, its cable."""

import asyncio
import itertools
import secrets
import threading
from collections import Counter
from typing import Final

from device_simulators.fake.line import Line
from device_simulators.faults import Faults
from device_simulators.panel import Panel, PanelEvent, Script, approve_all
from device_simulators.seed import Seed
from firmware_bridge.errors import Disconnected, Locked
from firmware_bridge.families import maker_of
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import DeviceFailure
from multisig import Fingerprint, Network

_numbers: Final = itertools.count(1)


class FakeDevice:
    """`family` is the make that it plays: one that wants to know a vault first, where that maker's devices do.

    `pin`: it starts locked, and its matrix shows each digit in the digit's own place. `passphrase`: it asks for one after each
    time it is plugged in. `faults` may be set anew at any time. `asked` counts the operations that reached it, by the names in
    `firmware_bridge.protocol`.
    """

    def __init__(
        self,
        seed: Seed,
        network: Network,
        *,
        family: Family = Family.TREZOR,
        script: Script = approve_all,
        model: str = "Fake device",
        label: str | None = None,
        pin: str | None = None,
        passphrase: bool = False,
        faults: Faults | None = None,
    ) -> None:
        self.seed = seed
        self.network = network
        self.model = model
        self.label = label
        self.panel = Panel(script)
        self.faults = faults or Faults()
        self.asked: Counter[str] = Counter()
        self.locked = pin is not None
        self.wants_passphrase = passphrase
        self.endpoint = Endpoint(family, f"unix:fake-{next(_numbers)}")
        self.present = True
        self.incarnation = 1
        self._pin = pin
        self._wallets: dict[str, Seed] = {}
        self._known: set[bytes] = set()
        self._lines: set[Line] = set()
        self._changing = threading.Lock()

    @property
    def fingerprint(self) -> Fingerprint:
        """Without a passphrase."""
        return self.seed.fingerprint

    @property
    def enrols(self) -> bool:
        return maker_of(self.endpoint.family).enrols

    @property
    def keeps_vaults(self) -> bool:
        """Whether a vault is remembered by the device, or by whoever keeps the proof that it gave, as with a Ledger."""
        return self.endpoint.family != Family.LEDGER

    def plug_in(self) -> None:
        self.present = True

    def unplug(self) -> None:
        """What runs ends so. Passphrases are forgotten, a PIN is needed again; vaults that it knows stay."""
        with self._changing:
            self.present = False
            self.incarnation += 1
        self.locked = self._pin is not None
        self._wallets.clear()
        for line in self._open_lines():
            line.cut()

    def lock(self) -> None:
        """Whatever it shows leaves the screen."""
        self.locked = True
        for line in self._open_lines():
            line.interrupt(Locked.code)

    def unlock(self) -> None:
        """As if the right PIN had been entered on it."""
        self.locked = False

    async def shown(self, kind: str = "") -> None:
        """Wait until the screen asks a question, of a kind that begins so. Put a deadline around it."""
        changed = asyncio.Event()

        def on_event(_event: PanelEvent) -> None:
            changed.set()

        unwatch = self.panel.watch(on_event)
        try:
            while (pending := self.panel.pending) is None or not pending[1].kind.startswith(kind):
                await changed.wait()
                changed.clear()
        finally:
            unwatch()

    def takes_pin(self, places: str | None) -> bool:
        self.locked = self.locked and places != self._pin
        return not self.locked

    def open_wallet(self, passphrase: str) -> str:
        """The session in which this passphrase need not be given again."""
        session = secrets.token_hex(16)
        self._wallets[session] = self.seed.with_passphrase(passphrase)
        return session

    def wallet(self, session: str | None) -> Seed | None:
        """Whose keys are used; None where a passphrase has to be given first."""
        if not self.wants_passphrase:
            return self.seed
        return None if session is None else self._wallets.get(session)

    def remember(self, vault: bytes) -> None:
        self._known.add(vault)

    def knows(self, vault: bytes) -> bool:
        return vault in self._known

    def join(self, line: Line) -> None:
        """:raises DeviceFailure: it is not plugged in."""
        with self._changing:
            if not self.present:
                raise DeviceFailure(Disconnected.code, None)
            self._lines.add(line)
            line.join()

    def leave(self, line: Line) -> None:
        with self._changing:
            self._lines.discard(line)

    def _open_lines(self) -> tuple[Line, ...]:
        with self._changing:
            return tuple(self._lines)
