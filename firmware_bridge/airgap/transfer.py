"""What goes through a series of QR codes, how far it is, and how large it may be."""

from dataclasses import dataclass
from enum import Enum, unique
from typing import Final, Protocol

from firmware_bridge.errors import BridgeError, DeviceFault, Disconnected, NoPermission, Unsupported

# FOLDED from firmware_bridge/airgap/outcomes.py: Outcomes without a cable: the same leaves of `BridgeError` and the same codes, in the words of cards, files and QR codes.
#
# The card, the file and the camera stand for the device here: what they cannot do, the device could not do.


# What a Coldcard Mk4 and Q take for a PSBT, and what `multisig` reads (MAX_BYTES).
MAX_BYTES: Final = 2 * 1024 * 1024
# Two base-36 digits, BBQr's own limit. Nobody holds a camera still for more, and UR's arithmetic grows with its square.
MAX_PARTS: Final = 1_295
# A QR code of version 40 at level L holds 4,296 alphanumeric characters; in bytes, 2,953.
MAX_TEXT: Final = 4_296


@unique
class Content(Enum):
    """What the bytes are, by the letter that BBQr has for it."""

    PSBT = "P"
    TRANSACTION = "T"
    JSON = "J"
    TEXT = "U"
    BINARY = "B"


@dataclass(frozen=True)
class Transfer:
    """What a series carried. `content` is what its sender calls it; the bytes are not looked into."""

    content: Content
    data: bytes


@dataclass(frozen=True)
class Received:
    """How far a transfer is: `seen` parts that bring something new, of the `wanted` ones that are enough."""

    seen: int
    wanted: int

    @property
    def complete(self) -> bool:
        return self.seen >= self.wanted


class Assembler(Protocol):
    """Puts a transfer together from the texts of its QR codes, in any order, repeated or not.

    A text that is refused changes nothing: the camera may go on.
    """

    def add(self, text: str) -> Received:
        """:raises Unreadable: the text is no sound part; `OtherTransfer`, where it is one of another series."""

    @property
    def result(self) -> Transfer | None:
        """What was carried, as soon as it is complete."""


class Unreadable(DeviceFault):
    """What was read is not what it should be: damaged, of another kind, too large."""

    hint = "Save or show it again on the device, and read it again."

    def __init__(self, sentence: str, *, detail: str | None = None) -> None:
        # Past the sentence of `DeviceFault`, which blames a device that was never asked.
        BridgeError.__init__(self, sentence, detail=detail)


class OtherTransfer(Unreadable):
    """A QR code of another series than the one that is being read. What was read so far is kept."""

    hint = "Point the camera at one series only; to read another one, start over."


class OtherTransaction(Unreadable):
    """A sound answer to another request."""

    hint = "Choose the file that the device wrote for this transaction; the names of both begin alike."


class NothingSigned(Unreadable):
    """It is the right transaction, and has no new signature of this signer."""

    hint = "Sign on the device first, then take what it wrote: its name ends in -part.psbt or -signed.psbt."


class FinalTransaction(Unsupported):
    """A complete transaction in place of a signed PSBT, as Coldcard's `-final.txn`."""

    sentence = "This is a finalised transaction; it is not needed here, and its signatures are not taken."
    hint = "Choose the PSBT that the device wrote beside it: its name ends in -part.psbt or -signed.psbt."


class TooMuchForCodes(Unsupported):
    """More bytes than a series of QR codes of this size carries."""

    sentence = "This transaction is too large for QR codes of this size."
    hint = "Use a card, larger QR codes, or several transactions with fewer inputs."


class NameTaken(DeviceFault):
    """Another file has the name already. It was not touched."""

    hint = "Choose another label, or remove the old file yourself."

    def __init__(self, name: str) -> None:
        BridgeError.__init__(self, f"There is another file called {name} already; it was left as it is.")


class NoCard(Disconnected):
    """The card, the folder or the file is not there."""

    sentence = "The card, folder or file is not there."
    hint = "Insert the card, look at its name, and repeat."


class CardProtected(NoPermission):
    """It may not be read or written."""

    sentence = "The card or folder does not let this program read or write."
    hint = "Check the card's lock and who may write to it."


class CardFault(DeviceFault):
    """Reading or writing failed: full, torn out, worn."""

    hint = "Check that the card has room and is well seated, or use another card."

    def __init__(self, detail: str | None) -> None:
        BridgeError.__init__(self, f"The card failed: {detail or 'without a reason'}.", detail=detail)
