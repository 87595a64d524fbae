"""Who may use the seed: the PIN lock, and the sessions that remember a passphrase."""

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from device_simulators.seed import Seed
from device_simulators.trezor import screens
from device_simulators.trezor.messages import (
    ButtonCode,
    FailureCode,
    PassphraseAck,
    PassphraseRequest,
    PinMatrixAck,
    PinMatrixRequest,
)
from device_simulators.trezor.work import TrezorRefused, TrezorWork, action_cancelled, data_error

MAX_SESSIONS = 10
SESSION_ID_BYTES = 32
MAX_PASSPHRASE_BYTES = 50
"""Limits of the firmware."""

CHECK_SECONDS = 0.9
"""What it takes to check a PIN, right or wrong, as seen on Trezor One 1.14.1. Each wrong PIN doubles the wait
before the next one is looked at (get_backoff_time_ms in storage/storage.c).
"""

_DIGITS = "123456789"
_CURRENT_PIN = 1


class TrezorAccess:
    """The lock and the sessions. Without a PIN the device is never locked, as a real one.

    `on_device`: it has a screen to enter secrets on; `always_on_device`: passphrases there only.
    """

    def __init__(
        self,
        seed: Seed,
        pin: str | None,
        *,
        passphrase_protection: bool,
        on_device: bool = False,
        always_on_device: bool = False,
        random_bytes: Callable[[int], bytes],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        if pin is not None and (not pin or not set(pin) <= set(_DIGITS)):
            raise ValueError("a PIN is made of the digits 1 to 9")
        self._seed = seed
        self._pin = pin
        self._random_bytes = random_bytes
        self._sleep = sleep
        self._wrong_pins = 0
        self._sessions: OrderedDict[bytes, Seed | None] = OrderedDict()
        self.passphrase_protection = passphrase_protection
        self.on_device = on_device
        self.always_on_device = always_on_device
        self.entered = ""
        """The passphrase that a person enters on the device."""
        self.unlocked = pin is None
        self.matrix: str | None = None
        """The digits as they stand on the screen while a PIN is asked for: bottom row first, as places are
        numbered.
        """

    @property
    def pin_protection(self) -> bool:
        return self._pin is not None

    def lock(self) -> None:
        self.unlocked = not self.pin_protection

    def power_off(self) -> None:
        """Forget what was in memory: sessions with their passphrases, and that a PIN was given."""
        self.lock()
        self._sessions.clear()

    def session(self, wanted: bytes | None) -> bytes:
        """The wanted session if it is still known, else a new one."""
        if wanted is not None and wanted in self._sessions:
            self._sessions.move_to_end(wanted)
            return wanted
        session_id = self._random_bytes(SESSION_ID_BYTES)
        self._sessions[session_id] = None
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session_id

    async def open(self, work: TrezorWork, session_id: bytes) -> Seed:
        """The seed, once PIN and passphrase are given.

        :raises Refused: a wrong PIN, a passphrase that is too long.
        """
        await self.unlock(work)
        if not self.passphrase_protection:
            return self._seed
        seed = self._sessions.get(session_id)
        if seed is None:
            seed = self._sessions[session_id] = await self._ask_passphrase(work)
        return seed

    async def unlock(self, work: TrezorWork) -> None:
        """:raises Refused: a wrong PIN, or none."""
        if not self.unlocked:
            await (self._enter_pin(work) if self.on_device else self._ask_pin(work))

    async def _ask_pin(self, work: TrezorWork) -> None:
        self.matrix = self._shuffle()
        work.panel.notify(screens.pin_matrix(self.matrix))
        try:
            work.send(PinMatrixRequest(type=_CURRENT_PIN))
            answer = await work.receive(PinMatrixAck)
            entered = self._read_places(answer.pin, self.matrix)
        finally:
            self.matrix = None
        await self._sleep(2**self._wrong_pins - 1 + CHECK_SECONDS)
        if not hmac.compare_digest(entered, self._pin or ""):
            self._wrong_pins += 1
            raise TrezorRefused(FailureCode.PIN_INVALID, "PIN invalid")
        self._wrong_pins = 0
        self.unlocked = True

    async def _enter_pin(self, work: TrezorWork) -> None:
        try:
            await work.confirm(ButtonCode.PIN_ENTRY, screens.enter_pin())
        except TrezorRefused:
            raise TrezorRefused(FailureCode.PIN_CANCELLED, "PIN entry cancelled") from None
        self.unlocked = True

    def _read_places(self, places: str, matrix: str) -> str:
        if not set(places) <= set(_DIGITS):
            raise TrezorRefused(FailureCode.PIN_CANCELLED, "PIN cancelled")
        return "".join(matrix[int(place) - 1] for place in places)

    def _shuffle(self) -> str:
        weights = self._random_bytes(8 * len(_DIGITS))
        return "".join(sorted(_DIGITS, key=lambda digit: weights[8 * int(digit) - 8 : 8 * int(digit)]))

    async def _ask_passphrase(self, work: TrezorWork) -> Seed:
        if self.always_on_device:
            return await self._enter_passphrase(work)
        work.send(PassphraseRequest())
        answer = await work.receive(PassphraseAck)
        if answer.on_device:
            if not self.on_device:
                raise data_error("This firmware is incapable of passphrase entry on the device.")
            return await self._enter_passphrase(work)
        if answer.passphrase is None:
            raise data_error("No passphrase provided. Use empty string to set an empty passphrase.")
        if len(answer.passphrase.encode()) > MAX_PASSPHRASE_BYTES:
            raise data_error("Passphrase too long")
        if answer.passphrase:
            await self._confirm_passphrase(work, answer.passphrase)
        return self._seed.with_passphrase(answer.passphrase)

    async def _confirm_passphrase(self, work: TrezorWork, passphrase: str) -> None:
        for prompt in (screens.hidden_wallet(), screens.passphrase(passphrase)):
            if not await work.choose(ButtonCode.OTHER, prompt):
                raise action_cancelled("Passphrase dismissed")

    async def _enter_passphrase(self, work: TrezorWork) -> Seed:
        await work.confirm(ButtonCode.PASSPHRASE_ENTRY, screens.enter_passphrase())
        return self._seed.with_passphrase(self.entered)
