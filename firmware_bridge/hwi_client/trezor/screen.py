"""A Trezor's questions to the person: reported to the caller, and answered by `unlock` only."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hwilib.devices.trezorlib import messages
from hwilib.devices.trezorlib.client import PASSPHRASE_ON_DEVICE
from hwilib.devices.trezorlib.exceptions import Cancelled

from firmware_bridge.operations import CONFIRM_ADDRESS
from firmware_bridge.protocol import DriverHost, Question

# The firmware's limits: MAX_PIN_LEN, and MAX_PASSPHRASE_LEN in bytes of UTF-8 (HWI counts characters).
_MAX_PIN: Final = 50
_MAX_PASSPHRASE_BYTES: Final = 50
_PLACES: Final = frozenset("123456789")
# Progress reports per signing: a report costs more than an input's messages.
_SIGNING_NOTES: Final = 10
# What fits on a Trezor One's page (fsm_layoutPaginated).
_TEXT_PAGE: Final = 4 * 18
_BYTES_PAGE: Final = 32
_BIP44: Final = 0x80000000 + 44

# Trezor's button requests (ButtonRequestType in messages-common.proto): step and text.
_BUTTONS: Final[Mapping[int, tuple[str, str]]] = {
    2: ("confirm-fee", "The fee is high: confirm it on the device"),
    3: ("confirm-output", "Confirm an output on the device"),
    8: ("confirm-transaction", "Confirm the total and the fee on the device"),
    10: CONFIRM_ADDRESS,
    19: ("enter-passphrase", "Enter the passphrase on the device"),
    20: ("enter-pin", "Enter the PIN on the device"),
}
_BUTTON: Final = ("confirm", "Confirm on the device")

ENTRIES: Final = (messages.ButtonRequestType.PinEntry, messages.ButtonRequestType.PassphraseEntry)
"""Button requests for a secret on the device's own screen."""


class PinNeeded(Cancelled):  # type: ignore[misc]  # HWI is untyped
    """The device asks for a PIN, and none was given."""

    def __init__(self, message: str = "the device asks for its PIN") -> None:
        super().__init__(message)
        self.message = message


class PassphraseNeeded(Cancelled):  # type: ignore[misc]  # HWI is untyped
    """The device asks for a passphrase, and none was given."""

    def __init__(self, message: str = "the device asks for a passphrase") -> None:
        super().__init__(message)
        self.message = message


Note = tuple[str, str, int | None, int | None]
"""Step, text, and the progress where it can be counted."""


def _plain(code: int) -> Note:
    return (*_BUTTONS.get(code, _BUTTON), None, None)


class SigningProgress:
    """The progress of a signing. `inputs` and `payments`: how many there are, None if unknown.

    A Trezor One asks once per payment. Later models ask several times, before they read the next output.
    """

    def __init__(self, inputs: int, payments: int | None, *, once_each: bool) -> None:
        self._inputs = inputs
        self._payments = payments
        self._once_each = once_each
        self._asked = 0
        self._output: int | None = None
        self._asked_output: int | None = None

    def asked(self, code: int) -> Note:
        step, text, done, total = _plain(code)
        if (
            code == messages.ButtonRequestType.ConfirmOutput
            and (counted := self.confirm_output()) is not None
        ):
            done, total = counted
            text = f"Confirm output {done} of {total} on the device"
        return step, text, done, total

    def confirm_output(self) -> tuple[int, int] | None:
        """(number of the payment in question, how many there are), if known."""
        if self._once_each or self._output != self._asked_output:
            self._asked += 1
            self._asked_output = self._output
        total = self._payments
        return None if total is None or self._asked > total else (self._asked, total)

    def follow(self, request: Any) -> tuple[int, int] | None:
        """(signed inputs, of how many), if the device's request is worth a report."""
        if request.request_type == messages.RequestType.TXOUTPUT and not request.details.tx_hash:
            self._output = request.details.request_index
        signed = request.serialized
        if signed is None or signed.signature_index is None:
            return None
        done, total = signed.signature_index + 1, self._inputs
        told = done * _SIGNING_NOTES // total > (done - 1) * _SIGNING_NOTES // total
        return (done, total) if told else None


class Announced:
    """Screens that are known in advance, one button request each. Further ones are reported by their code."""

    def __init__(self, step: str, screens: Sequence[str]) -> None:
        self._step = step
        self._screens = screens
        self._asked = 0

    def asked(self, code: int) -> Note:
        if self._asked == len(self._screens):
            return _plain(code)
        text = self._screens[self._asked]
        self._asked += 1
        total = len(self._screens)
        return self._step, f"Screen {self._asked} of {total} on the device: {text}", self._asked, total


def message_on_one(message: bytes, path: Sequence[int]) -> Announced:
    """The screens of fsm_msgSignMessage in legacy/v1.14.1. Messages are signed as by a P2PKH address, so that
    it warns of other paths.
    """
    warned = ["it warns of a wrong address path, as for every key of a vault; continue"]
    ascii_only = all(0x20 <= byte <= 0x7E for byte in message)
    pages = max(1, -(-len(message) // (_TEXT_PAGE if ascii_only else _BYTES_PAGE)))
    form = "the message" if ascii_only else "the message in hexadecimal"
    return Announced(
        "confirm-message",
        [
            *([] if path[:1] == [_BIP44] else warned),
            "the address whose key signs; confirm it",
            *(f"{form}, page {page} of {pages}" for page in range(1, pages + 1)),
        ],
    )


def message_elsewhere() -> Announced:
    return Announced("confirm-message", ["the message"])


def hidden_wallet() -> Announced:
    return Announced(
        "confirm-passphrase",
        ["whether to open a hidden wallet; confirm it", "the passphrase; confirm it if it is yours"],
    )


class AddressProgress:
    """One address on several pages: the left button turns pages and refuses nothing."""

    def __init__(self) -> None:
        self._told = False

    def asked(self, code: int) -> Note | None:
        """None if it is nothing new."""
        if self._told and code == messages.ButtonRequestType.Address:
            return None
        self._told = True
        return _plain(code)


# The expected questions of an operation: `asked` says what to report of the device's next button request.
Progress = SigningProgress | Announced | AddressProgress


class TrezorUi:
    """trezorlib's user interface: reports to the caller, and asks for secrets only within `person`."""

    def __init__(self, caller: DriverHost) -> None:
        self._caller = caller
        self.asking = False
        """Whether the person may be asked for a PIN or a passphrase. If not, the need is an outcome."""
        self.progress: Progress | None = None

    @contextmanager
    def person(self) -> Iterator[None]:
        """The device may ask for what unlocks it."""
        self.asking = True
        try:
            yield
        finally:
            self.asking = False

    def button_request(self, request: Any) -> None:
        note = _plain(request.code) if self.progress is None else self.progress.asked(request.code)
        if note is not None:
            self._caller.tell(*note)

    def follow(self, request: Any) -> None:
        """Follow the device's requests while it signs."""
        if (
            isinstance(self.progress, SigningProgress)
            and (signed := self.progress.follow(request)) is not None
        ):
            self._caller.tell("signing", "The device signs input {} of {}".format(*signed), *signed)

    def tell_check(self) -> None:
        """Checking a PIN takes a second, more after wrong ones; the device does not say how much."""
        self._caller.tell(
            "checking-pin",
            "The device checks the PIN. After wrong ones it makes you wait first: "
            "1, 2, 4, 8, 16, 31 seconds and so on."
            " Leave it connected",
        )

    def refuse_entry(self, code: int) -> None:
        """:raises PinNeeded, PassphraseNeeded: the device asks for a secret outside of `person`."""
        if code in ENTRIES and not self.asking:
            raise PinNeeded if code == messages.ButtonRequestType.PinEntry else PassphraseNeeded

    def get_pin(self, _code: object = None) -> str:
        """The positions of the PIN's digits, as the person types them.

        :raises PinNeeded: no answer, or other characters than 1 to 9.
        """
        places = self._ask(Question.PIN)
        if places is None:
            raise PinNeeded
        if not 0 < len(places) <= _MAX_PIN or not set(places) <= _PLACES:
            raise PinNeeded("a PIN is entered as the places of its digits, 1 to 9")
        return places

    def get_passphrase(self, available_on_device: bool) -> object:
        """:raises PassphraseNeeded: no answer, or too long."""
        passphrase = self._ask(Question.PASSPHRASE)
        if passphrase is not None:
            return _normal(passphrase)
        if self.asking and available_on_device:
            return PASSPHRASE_ON_DEVICE
        raise PassphraseNeeded

    def _ask(self, question: Question) -> str | None:
        return self._caller.ask(question) if self.asking else None


def _normal(passphrase: str) -> str:
    """NFKD as in BIP-39, so that every keyboard's ü leads to the same wallet."""
    normal = unicodedata.normalize("NFKD", passphrase)
    if len(normal.encode()) > _MAX_PASSPHRASE_BYTES:
        raise PassphraseNeeded(f"a Trezor takes a passphrase of {_MAX_PASSPHRASE_BYTES} bytes at most")
    return normal
