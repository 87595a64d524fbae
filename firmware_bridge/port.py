"""What the worker's loop asks of an open device, whoever drives it: named operations on plain values.

    operation     arguments                          answer
    probe         -                                  model, label, fingerprint, obstacle (code of a `BridgeError`), detail
    fingerprint   -                                  the master key's fingerprint, hexadecimal
    xpubs         paths                              fingerprint, xpubs in the order of the paths
    sign          psbt (base64), policy, payments,   the device's PSBT, base64
                  resume
    sign_message  text, path                         the signature, base64
    enrol         policy, again, file, xor           hmac, hexadecimal, or None where the maker keeps the vault on the device
    show_address  policy, chain, index               the address as the device has shown it
    identify      -                                  None; the device shows itself to the person
    unlock        -                                  fingerprint, session (what to open the device with from now on, or None)

A `policy` is: kind ("vault" or "profile"), name, threshold, keys (key expressions with origins, sorted as for its
verification code), hmac (hexadecimal, or None). `payments`: how many outputs a person is asked about. `resume`: an earlier attempt at this
same transaction was cut off. `again`: enrol it even where the device says that it knows it. `file`, `xor`: the vault as a Coldcard
reads it, and the exclusive or of its fingerprints. What a family cannot do is not in its table of operations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, Final, Protocol

# The step that a driver tells right before the device is told to ask about a transaction: an attempt that is cut off from then on
# may have left a question, or an answer, on the device.
TAKEN: Final = "checking"


@unique
class Question(StrEnum):
    """What a device may want to know from a person at the computer."""

    PIN = "pin"
    """The places of the PIN's digits in the matrix on the device: 7 8 9 above 4 5 6 above 1 2 3."""
    PASSPHRASE = "passphrase"  # noqa: S105 - a question, no secret
    """The passphrase of a hidden wallet; the empty one is an answer too."""
    PASSWORD = "password"  # noqa: S105 - a question, no secret
    """The password that a Digital Bitbox is unlocked with."""
    PAIRING = "pairing"
    """Whether a BitBox02 shows the code that was just told: any answer is a yes, None is a no."""


class Caller(Protocol):
    """Whoever asked for the operation that runs, as a driver sees them."""

    def tell(self, step: str, text: str, done: int | None = None, total: int | None = None) -> None:
        """What the device does or waits for: a stable word, a sentence, and how far it is where that can be counted."""

    def ask(self, question: Question) -> str | None:
        """Wait for the person's answer; None where there is nobody to ask.

        :raises DeviceFailure: the operation was given up meanwhile.
        """


@dataclass(frozen=True)
class Opening:
    """How a device is to be opened.

    `recover`: a worker of this device was killed in the middle; it may still wait for an answer. `session`: what `unlock` returned,
    so that a passphrase is not asked for again by the next worker.
    """

    recover: bool = False
    session: str | None = field(default=None, repr=False)


class DeviceFailure(Exception):
    """A device's failure that has its outcome already: (code of a `BridgeError`, detail).

    `question_open`: the device still shows a question of an operation that was given up, and this client watches it: keep the client.
    """

    def __init__(self, code: str, detail: str | None, *, question_open: bool = False) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.question_open = question_open


class DeviceClient(Protocol):
    """One open device. Every operation takes and returns plain values and raises `DeviceFailure` only."""

    def call(self, op: str, args: Mapping[str, Any]) -> Any: ...

    def cancel(self) -> None:
        """From another thread: ask the device to give up what it waits for."""

    def close(self) -> None: ...


Opener = Callable[[Caller, Opening], DeviceClient]
