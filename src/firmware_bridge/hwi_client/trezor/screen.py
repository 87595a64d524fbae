"""What a Trezor wants from a person, told to whoever asked for the operation. Nothing is decided here."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from hwilib.devices.trezorlib import messages
from hwilib.devices.trezorlib.client import PASSPHRASE_ON_DEVICE
from hwilib.devices.trezorlib.exceptions import Cancelled

from firmware_bridge.families import TREZOR_BUTTON, TREZOR_BUTTONS
from firmware_bridge.port import Caller, Question

# The firmware's limits: MAX_PIN_LEN, and MAX_PASSPHRASE_LEN in bytes of UTF-8, where HWI counts characters.
_MAX_PIN: Final = 50
_MAX_PASSPHRASE_BYTES: Final = 50
_PLACES: Final = frozenset("123456789")
# How often it is told how far the signing is: a note costs more than an input's messages do.
_SIGNING_NOTES: Final = 10

ENTRIES: Final = (messages.ButtonRequestType.PinEntry, messages.ButtonRequestType.PassphraseEntry)
"""What a button request means by which the device asks for a secret on its own screen."""


class PinNeeded(Cancelled):  # type: ignore[misc]  # HWI is untyped
    """The device asks for a PIN, and nobody gave one."""

    def __init__(self, message: str = "the device asks for its PIN") -> None:
        super().__init__(message)
        self.message = message


class PassphraseNeeded(Cancelled):  # type: ignore[misc]  # HWI is untyped
    """The device asks for a passphrase, and nobody gave one."""

    def __init__(self, message: str = "the device asks for a passphrase") -> None:
        super().__init__(message)
        self.message = message


class SigningProgress:
    """How far a signing is. `inputs` and `payments`: how many there are, None where nobody knows.

    A Trezor One asks once about each payment. Later models ask several times about one, but before they read the next output.
    """

    def __init__(self, inputs: int, payments: int | None, *, once_each: bool) -> None:
        self._inputs = inputs
        self._payments = payments
        self._once_each = once_each
        self._asked = 0
        self._output: int | None = None
        self._asked_output: int | None = None

    def confirm_output(self) -> tuple[int, int] | None:
        """(number of the payment that is asked about, how many there are), where that can be told."""
        if self._once_each or self._output != self._asked_output:
            self._asked += 1
            self._asked_output = self._output
        total = self._payments
        return None if total is None or self._asked > total else (self._asked, total)

    def follow(self, request: Any) -> tuple[int, int] | None:
        """(signed inputs, of how many), where the device's request brings news worth telling."""
        if request.request_type == messages.RequestType.TXOUTPUT and not request.details.tx_hash:
            self._output = request.details.request_index
        signed = request.serialized
        if signed is None or signed.signature_index is None:
            return None
        done, total = signed.signature_index + 1, self._inputs
        told = done * _SIGNING_NOTES // total > (done - 1) * _SIGNING_NOTES // total
        return (done, total) if told else None


class Screen:
    """trezorlib's user interface, for a library: it tells, and asks only where that was asked for."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.asking = False
        """Whether a person may be asked for a PIN or a passphrase; else that is an outcome."""
        self.progress: SigningProgress | None = None

    @contextmanager
    def person(self) -> Iterator[None]:
        """The device may ask for what unlocks it."""
        self.asking = True
        try:
            yield
        finally:
            self.asking = False

    def button_request(self, request: Any) -> None:
        step, text = TREZOR_BUTTONS.get(request.code, TREZOR_BUTTON)
        counted = None
        if self.progress is not None and request.code == messages.ButtonRequestType.ConfirmOutput:
            counted = self.progress.confirm_output()
        if counted is None:
            self._caller.tell(step, text)
        else:
            self._caller.tell(step, "Confirm output {} of {} on the device".format(*counted), *counted)

    def follow(self, request: Any) -> None:
        """See what the device asks for next while it signs."""
        if self.progress is not None and (signed := self.progress.follow(request)) is not None:
            self._caller.tell("signing", "The device signs input {} of {}".format(*signed), *signed)

    def refuse_entry(self, code: int) -> None:
        """:raises PinNeeded, PassphraseNeeded: the device waits for a secret that nobody was to be asked for."""
        if code in ENTRIES and not self.asking:
            raise PinNeeded if code == messages.ButtonRequestType.PinEntry else PassphraseNeeded

    def get_pin(self, _code: object = None) -> str:
        """The places of the PIN's digits, as the person types them.

        :raises PinNeeded: there is nobody to ask, or what was typed are no places.
        """
        places = self._ask(Question.PIN)
        if places is None:
            raise PinNeeded
        if not 0 < len(places) <= _MAX_PIN or not set(places) <= _PLACES:
            raise PinNeeded("a PIN is told by the places of its digits, 1 to 9")
        return places

    def get_passphrase(self, available_on_device: bool) -> object:
        """:raises PassphraseNeeded: nobody has one, or it is too long."""
        passphrase = self._ask(Question.PASSPHRASE)
        if passphrase is not None:
            return _normal(passphrase)
        if self.asking and available_on_device:
            return PASSPHRASE_ON_DEVICE
        raise PassphraseNeeded

    def _ask(self, question: Question) -> str | None:
        return self._caller.ask(question) if self.asking else None


def _normal(passphrase: str) -> str:
    """As BIP-39 has it, so that every keyboard's ü leads to the same wallet."""
    normal = unicodedata.normalize("NFKD", passphrase)
    if len(normal.encode()) > _MAX_PASSPHRASE_BYTES:
        raise PassphraseNeeded(f"a Trezor takes a passphrase of {_MAX_PASSPHRASE_BYTES} bytes at most")
    return normal
