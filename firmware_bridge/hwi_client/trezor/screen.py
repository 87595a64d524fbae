"""A Trezor's questions to the person: reported to the caller, and answered by `unlock` only."""

import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from firmware_bridge.errors import Locked, NeedsPassphrase
from firmware_bridge.hwi_client.trezor.library import messages
from firmware_bridge.operations import CONFIRM_ADDRESS
from firmware_bridge.protocol import DriverHost, Question

# The firmware's limits: MAX_PIN_LEN, and MAX_PASSPHRASE_LEN in bytes of UTF-8 (HWI counts characters).
_MAX_PIN: Final = 50
_MAX_PASSPHRASE_BYTES: Final = 50
_PLACES: Final = frozenset("123456789")
# Progress reports per signing: a report costs more than an input's messages.
_SIGNING_NOTES: Final = 10
# Trezor's button requests (ButtonRequestType in messages-common.proto): step and text.
_BUTTONS: Final[Mapping[int, tuple[str, str]]] = {
    2: ("confirm-fee", "The fee is high: confirm it on the device"),
    3: ("confirm-output", "Confirm an output on the device"),
    8: ("confirm-transaction", "Confirm the total, the fee and any lock time on the device"),
    10: CONFIRM_ADDRESS,
    19: ("enter-passphrase", "Enter the passphrase on the device"),
    20: ("enter-pin", "Enter the PIN on the device"),
}
_BUTTON: Final = ("confirm", "Confirm on the device")
# What some operations show: of each of their screens this is said.
MESSAGE_ON_ONE: Final = (
    "confirm-message",
    "Confirm each screen on the device: it warns of the path of a vault's key, and shows address and message",
)
HIDDEN_WALLET: Final = (
    "confirm-passphrase",
    "Confirm on the device that it opens a hidden wallet, and the passphrase if it is yours",
)
GREETING: Final = ("identify", 'The device asks whether to "answer to ping"; either button ends it')

ENTRIES: Final = (
    messages.ButtonRequestType.PinEntry,
    messages.ButtonRequestType.PassphraseEntry,
)
"""Button requests for a secret on the device's own screen."""


ASKS_PIN: Final = "the device asks for its PIN"
ASKS_PASSPHRASE: Final = "the device asks for a passphrase"  # noqa: S105 - a sentence, no secret

Note = tuple[str, str, int | None, int | None]
"""Step, text, and the progress where it can be counted."""


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
        (step, text), done, total = _BUTTONS.get(code, _BUTTON), None, None
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
        due = done * _SIGNING_NOTES // total > (done - 1) * _SIGNING_NOTES // total
        return (done, total) if due else None


class TrezorUi:
    """What the driver says and asks: reports to the caller, and asks for secrets only within `person`."""

    def __init__(self, caller: DriverHost) -> None:
        self._caller = caller
        self.asking = False
        """Whether the person may be asked for a PIN or a passphrase. If not, the need is an outcome."""
        self.progress: SigningProgress | None = None
        self.words: tuple[str, str] | None = None
        """Step and text of every screen of the operation, if its button requests do not tell."""
        self._told: Note | None = None

    def start_over(self) -> None:
        """The next operation: nothing is known of its screens."""
        self.progress = self.words = self._told = None

    @contextmanager
    def person(self) -> Iterator[None]:
        """The device may ask for what unlocks it."""
        self.asking = True
        try:
            yield
        finally:
            self.asking = False

    def button_request(self, request: Any) -> None:
        if self.progress is not None:
            note = self.progress.asked(request.code)
        else:
            note = (*(self.words or _BUTTONS.get(request.code, _BUTTON)), None, None)
        # An address has several pages, and newer models ask several times about one output.
        if note != self._told:
            self._told = note
            self._caller.tell(*note)

    def follow(self, request: Any) -> None:
        """Follow the device's requests while it signs."""
        if self.progress is not None and (signed := self.progress.follow(request)) is not None:
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
        """:raises BridgeError: the device asks for a secret outside of `person`."""
        if code in ENTRIES and not self.asking:
            pin = code == messages.ButtonRequestType.PinEntry
            raise Locked(detail=ASKS_PIN) if pin else NeedsPassphrase(detail=ASKS_PASSPHRASE)

    def get_pin(self) -> str:
        """The positions of the PIN's digits, as the person types them.

        :raises Locked: no answer, or other characters than 1 to 9.
        """
        places = self._ask(Question.PIN)
        if places is None:
            raise Locked(detail=ASKS_PIN)
        if not 0 < len(places) <= _MAX_PIN or not set(places) <= _PLACES:
            raise Locked(detail="a PIN is entered as the places of its digits, 1 to 9")
        return places

    def get_passphrase(self, available_on_device: bool) -> str | None:
        """None if the person enters it on the device.

        :raises NeedsPassphrase: no answer, or too long.
        """
        passphrase = self._ask(Question.PASSPHRASE)
        if passphrase is not None:
            return _normal(passphrase)
        if self.asking and available_on_device:
            return None
        raise NeedsPassphrase(detail=ASKS_PASSPHRASE)

    def _ask(self, question: Question) -> str | None:
        return self._caller.ask(question) if self.asking else None


def _normal(passphrase: str) -> str:
    """NFKD as in BIP-39, so that every keyboard's ü leads to the same wallet."""
    normal = unicodedata.normalize("NFKD", passphrase)
    if len(normal.encode()) > _MAX_PASSPHRASE_BYTES:
        most = f"a Trezor takes a passphrase of {_MAX_PASSPHRASE_BYTES} bytes at most"
        raise NeedsPassphrase(detail=most)
    return normal
