"""What goes through a series of QR codes, how far it is, and how large it may be."""

from dataclasses import dataclass
from enum import Enum, unique
from typing import Final, Protocol

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
