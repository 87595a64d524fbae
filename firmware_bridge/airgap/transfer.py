"""What is transferred without a cable, its limits, and its outcomes."""

from dataclasses import dataclass
from enum import Enum, unique
from typing import Final, Protocol

from firmware_bridge.errors import BridgeError, DeviceFault, Disconnected, NoPermission, Unsupported

# The limit of a Coldcard Mk4 and Q for a PSBT, and of `multisig` (MAX_BYTES).
MAX_BYTES: Final = 2 * 1024 * 1024
# BBQr's own limit, two base-36 digits. No person holds a camera for more, and UR's work grows with the
# square.
MAX_PARTS: Final = 1_295
# A QR code of version 40 at level L holds 4,296 alphanumeric characters; in bytes, 2,953.
MAX_TEXT: Final = 4_296


@unique
class Content(Enum):
    """The kind of content, with BBQr's letter."""

    PSBT = "P"
    TRANSACTION = "T"
    JSON = "J"
    TEXT = "U"
    BINARY = "B"


@dataclass(frozen=True)
class Transfer:
    """The result of a transfer. `content` is what the sender says; the bytes are not checked."""

    content: Content
    data: bytes


@dataclass(frozen=True)
class Received:
    """The progress of a transfer: `seen` useful parts of `wanted`."""

    seen: int
    wanted: int

    @property
    def complete(self) -> bool:
        return self.seen >= self.wanted


class Assembler(Protocol):
    """Assembles a transfer from the texts of its QR codes, in any order, with repetitions.

    A refused text changes nothing: the scan may go on.
    """

    def add(self, text: str) -> Received:
        """:raises BadTransfer: not a valid part; `OtherTransfer` if it belongs to another series."""

    @property
    def result(self) -> Transfer | None:
        """The content, as soon as it is complete."""


# The outcomes: leaves of `BridgeError`, with the same codes. The card, the file and the camera take the place
# of the device.
class BadTransfer(DeviceFault):
    """The content is damaged, of another kind, or too large."""

    hint = "Save or show it again on the device, and read it again."

    def __init__(self, sentence: str | None = None, *, detail: str | None = None) -> None:
        # Not `DeviceFault.__init__`, whose sentence blames the device.
        BridgeError.__init__(self, sentence, detail=detail)


class OtherTransfer(BadTransfer):
    """A QR code of another series. What was read so far is kept."""

    sentence = "This QR code belongs to another series."
    hint = "Point the camera at one series only; to read another one, start over."


class OtherTransaction(BadTransfer):
    """A valid answer to another request."""

    hint = "Choose the file that the device wrote for this transaction; the names of both begin alike."


class NothingSigned(BadTransfer):
    """The right transaction without a new signature by this signer."""

    hint = "Sign on the device first, then take what it wrote: its name ends in -part.psbt or -signed.psbt."


class FinalTransaction(Unsupported):
    """A complete transaction instead of a signed PSBT, such as Coldcard's `-final.txn`."""

    sentence = "This is a finalised transaction; it is not needed here, and its signatures are not taken."
    hint = "Choose the PSBT that the device wrote beside it: its name ends in -part.psbt or -signed.psbt."


class TooMuchForCodes(Unsupported):
    """The transaction is too large for a series of QR codes of this size."""

    sentence = "This transaction is too large for QR codes of this size."
    hint = "Use a card, larger QR codes, or several transactions with fewer inputs."


class FileNameTaken(DeviceFault):
    """Another file has this name. It was not touched."""

    hint = "Choose another label, or remove the old file yourself."

    def __init__(self, name: str) -> None:
        BridgeError.__init__(self, f"Another file is called {name}; it was left unchanged.")


class NoCard(Disconnected):
    """The card, the folder or the file is not there."""

    sentence = "The card, folder or file is not there."
    hint = "Insert the card, look at its name, and repeat."


class CardProtected(NoPermission):
    """It may not be read or written."""

    sentence = "The card or folder does not let this program read or write."
    hint = "Check the card's lock and who may write to it."


class CardFault(DeviceFault):
    """Reading or writing failed: full, removed, worn out."""

    hint = "Check that the card has room and is well seated, or use another card."

    def __init__(self, detail: str | None) -> None:
        BridgeError.__init__(self, f"The card failed: {detail or 'without a reason'}.", detail=detail)
