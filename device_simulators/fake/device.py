"""The fake: what it remembers, its screen, and the cable of one conversation."""

import asyncio
import contextlib
import itertools
import secrets
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, Final

from device_simulators.faults import Faults
from device_simulators.panel import Panel, PanelEvent, Prompt, Script, approve_all
from device_simulators.seed import Seed
from firmware_bridge.errors import BridgeError, Cancelled, Disconnected, Locked
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Endpoint, Family
from multisig import (
    Fingerprint,
    MultisigError,
    Network,
    Policy,
    Psbt,
    PsbtOutput,
    TxOut,
    Vault,
    encode_address,
    format_btc,
    parse_op_return,
)
from multisig.proofs import Prover, proven_output


class DeviceLink:
    """Between the thread that serves a conversation and the event loop that has the screen."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._changing = threading.Lock()
        self._cut = threading.Event()
        self._interruption: BridgeError | None = None
        self._waiting: Future[bool] | None = None

    def cut(self) -> None:
        """From any thread: the cable is pulled, or the other end is gone."""
        self._cut.set()
        self.interrupt(Disconnected())

    def interrupt(self, outcome: BridgeError) -> None:
        """From any thread: end what waits now, or is about to, with this outcome."""
        with self._changing:
            self._interruption = outcome
            if self._waiting is not None:
                self._waiting.cancel()

    def join(self) -> None:
        """For a new operation, with a device that is there: what ended the one before is over."""
        with self._changing:
            self._cut.clear()
            self._interruption = None

    def require_whole(self) -> None:
        """:raises BridgeError: the operation was interrupted."""
        if self._interruption is not None:
            raise self._interruption

    def say_nothing(self) -> None:
        """As a device that hangs does: until the bridge ends the conversation at its deadline."""
        self._cut.wait()

    @contextlib.contextmanager
    def showing(self, question: Coroutine[Any, Any, bool]) -> Iterator[Future[bool]]:
        """A question on the screen; it leaves the screen with the block. A conversation that is over shows
        none: the next one may have the screen already.

        :raises BridgeError: the operation was interrupted.
        """
        with self._changing:
            if self._interruption is not None:
                question.close()
                raise self._interruption
            self._waiting = answer = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            yield answer
        finally:
            with self._changing:
                self._waiting = None
            answer.cancel()

    def answer(self, waiting: "Future[bool]") -> bool:
        """:raises BridgeError: the operation was interrupted before the person decided."""
        try:
            return waiting.result()
        except CancelledError:
            raise self._interruption or Cancelled() from None


def transaction(psbt: Psbt, policy: Policy) -> list[Prompt]:
    """Each payment, then the whole; change that the policy proves is not shown, as on the makers' devices."""
    prover = Prover(policy)
    paid = [out for out in psbt.outputs if prover.prove(out.script_pubkey, out.derivations) is None]
    return [*(_payment(out, policy) for out in paid), _total(psbt)]


def _payment(out: PsbtOutput, policy: Policy) -> Prompt:
    data = parse_op_return(out.script_pubkey)
    if data is not None:
        return Prompt("sign-op-return", ("Data in the transaction", data.hex()))
    try:
        place = encode_address(out.script_pubkey, policy.network)
    except MultisigError:
        place = out.script_pubkey.hex()
    return Prompt("sign-output", (f"Send {format_btc(out.amount)} BTC", f"to {place}"))


def _total(psbt: Psbt) -> Prompt:
    coins = [proven_output(item) for item in psbt.inputs]
    spent = sum(coin.amount for coin in coins if isinstance(coin, TxOut))
    fee = spent - sum(out.amount for out in psbt.outputs)
    return Prompt("sign-total", ("Sign the transaction?", f"Fee {fee} sat"))


def message(text: str, path: str) -> Prompt:
    return Prompt("sign-message", ("Sign the message?", text, path))


def enrolment(name: str, policy: Policy) -> Prompt:
    keys = policy.cosigners if isinstance(policy, Vault) else (policy.key,)
    threshold = policy.threshold if isinstance(policy, Vault) else 1
    lines = (f"{threshold} of {len(keys)}", *(str(key.fingerprint) for key in keys))
    return Prompt("enrol-vault", (f"Register {name}?", *lines))


def address(text: str) -> Prompt:
    return Prompt("address", ("Is this the address?", text))


def greeting() -> Prompt:
    return Prompt("identify", ("Is this the device you mean?",))


_numbers: Final = itertools.count(1)


class FakeDevice:
    """`family`: whose behaviour it plays. It must know a vault first, where that maker's devices must.

    `pin`: it starts locked, and its matrix shows each digit in the digit's own place. `passphrase`: it asks
    for one after each time it is plugged in. `faults` may be changed at any time. `asked` counts the
    operations that reached it, by the names in `firmware_bridge.operations`.
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
        self._lines: set[DeviceLink] = set()
        self._changing = threading.Lock()

    @property
    def fingerprint(self) -> Fingerprint:
        """Without a passphrase."""
        return self.seed.fingerprint

    @property
    def enrols(self) -> bool:
        return MAKERS[self.endpoint.family].enrols

    @property
    def keeps_vaults(self) -> bool:
        """Whether a vault is remembered by the device, or by the host that keeps its proof, as with a
        Ledger.
        """
        return self.endpoint.family != Family.LEDGER

    def plug_in(self) -> None:
        self.present = True

    def unplug(self) -> None:
        """Running operations end. Passphrases are forgotten, a PIN is needed again; known vaults stay."""
        with self._changing:
            self.present = False
            self.incarnation += 1
        self.locked = self._pin is not None
        self._wallets.clear()
        for line in self._open_lines():
            line.cut()

    def lock(self) -> None:
        """An open question leaves the screen."""
        self.locked = True
        for line in self._open_lines():
            line.interrupt(Locked())

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
        """The seed in use; None until a passphrase is given, where one is needed."""
        if not self.wants_passphrase:
            return self.seed
        return None if session is None else self._wallets.get(session)

    def remember(self, vault: bytes) -> None:
        self._known.add(vault)

    def knows(self, vault: bytes) -> bool:
        return vault in self._known

    def join(self, line: DeviceLink) -> None:
        """:raises BridgeError: it is not plugged in."""
        with self._changing:
            if not self.present:
                raise Disconnected
            self._lines.add(line)
            line.join()

    def leave(self, line: DeviceLink) -> None:
        with self._changing:
            self._lines.discard(line)

    def _open_lines(self) -> tuple[DeviceLink, ...]:
        with self._changing:
            return tuple(self._lines)
