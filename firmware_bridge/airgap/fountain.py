"""A message as an endless series of parts, of which nearly any sufficient number gives it back (BCR-2024-001)."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from firmware_bridge.airgap import cbor
from firmware_bridge.airgap.mixing import fragments_of
from firmware_bridge.airgap.outcomes import OtherTransfer, Unreadable
from firmware_bridge.airgap.transfer import MAX_BYTES, MAX_PARTS, Received

# The length of the byte string stands before it.
_MAX_MESSAGE: Final = MAX_BYTES + 5
_FIELDS: Final = 5
_PART_NUMBERS: Final = 1 << 32


@dataclass(frozen=True)
class Shape:
    """What all parts of one message have in common: how many fragments, its length, its CRC-32."""

    fragments: int
    length: int
    checksum: int

    @property
    def fragment_length(self) -> int:
        return -(-self.length // self.fragments)


@dataclass(frozen=True)
class Part:
    """Part `number`, from 1 on, with its fragments laid over each other (exclusive or)."""

    shape: Shape
    number: int
    data: bytes

    def to_cbor(self) -> bytes:
        numbers = (self.number, self.shape.fragments, self.shape.length, self.shape.checksum)
        return cbor.array(*(cbor.unsigned(number) for number in numbers), cbor.byte_string(self.data))

    @classmethod
    def from_cbor(cls, data: bytes) -> Self:
        """:raises Unreadable: malformed, contradictory, or of a message that is too large."""
        reader = cbor.Reader(data)
        if reader.array() != _FIELDS:
            raise Unreadable("This QR code is no part of a UR series.")
        number, fragments, length, checksum = (reader.unsigned() for _ in range(_FIELDS - 1))
        data = reader.byte_string()
        reader.end()
        if fragments > MAX_PARTS or length > _MAX_MESSAGE:
            raise Unreadable(f"This series carries more than {MAX_BYTES} bytes or {MAX_PARTS} parts.")
        if not number or not fragments or len(data) * (fragments - 1) >= length:
            raise Unreadable("This QR code contradicts itself.")
        # Whoever cuts a message into fragments chooses their length, as long as the last one is needed.
        if len(data) * fragments < length:
            raise Unreadable("This QR code contradicts itself.")
        return cls(Shape(fragments, length, checksum), number, data)


def parts(message: bytes, max_fragment: int, *, first: int = 1) -> Iterator[Part]:
    """As far as the number of a part counts, which is 34 years at four a second: the plain fragments in order, then mixtures.

    :raises ValueError: the message is empty, or has more than `MAX_PARTS` fragments of at most `max_fragment` bytes; there is no
        part `first`.
    """
    if not 0 < first < _PART_NUMBERS:
        raise ValueError(f"the first part is number 1, and not {first}")
    fragments = -(-len(message) // max_fragment) if max_fragment > 0 else 0
    if not 0 < fragments <= MAX_PARTS:
        raise ValueError(
            f"{len(message)} bytes make no series of 1 to {MAX_PARTS} parts of {max_fragment} bytes"
        )
    shape = Shape(fragments, len(message), zlib.crc32(message))
    return _parts(message, shape, first)


def _parts(message: bytes, shape: Shape, first: int) -> Iterator[Part]:
    size = shape.fragment_length
    padded = message.ljust(size * shape.fragments, b"\0")
    pieces = [int.from_bytes(padded[start : start + size]) for start in range(0, len(padded), size)]
    for number in range(first, _PART_NUMBERS):
        mixed = 0
        for index in fragments_of(number, shape.fragments, shape.checksum):
            mixed ^= pieces[index]
        yield Part(shape, number, mixed.to_bytes(size))


class Collector:
    """Solves for the fragments as parts come in.

    Each part is a linear equation over GF(2): a set of fragments as bits, and their sum. Equations are kept in echelon form, so
    that there are never more of them than fragments, whatever is shown, and a part that says nothing new is seen to.
    """

    def __init__(self) -> None:
        self._shape: tuple[Shape, int] | None = None
        # By its lowest fragment: (fragments as bits, their sum).
        self._rows: dict[int, tuple[int, int]] = {}
        self._message: bytes | None = None

    @property
    def started(self) -> bool:
        return self._shape is not None

    @property
    def message(self) -> bytes | None:
        return self._message

    def add(self, part: Part) -> Received:
        """:raises OtherTransfer: a part of another message.
        :raises Unreadable: all is there, and its checksum is wrong; everything is forgotten.
        """
        shape = (part.shape, len(part.data))
        if self._shape not in {None, shape}:
            raise OtherTransfer("This QR code belongs to another series.")
        self._shape = shape
        if self._message is None:
            self._keep(part)
            if len(self._rows) == part.shape.fragments:
                self._finish(part.shape, len(part.data))
        return Received(len(self._rows), part.shape.fragments)

    def _keep(self, part: Part) -> None:
        chosen = fragments_of(part.number, part.shape.fragments, part.shape.checksum)
        bits, total = sum(1 << index for index in chosen), int.from_bytes(part.data)
        while bits:
            lowest = _lowest(bits)
            if lowest not in self._rows:
                self._rows[lowest] = bits, total
                return
            known, known_total = self._rows[lowest]
            bits, total = bits ^ known, total ^ known_total

    def _finish(self, shape: Shape, size: int) -> None:
        message = b"".join(number.to_bytes(size) for number in self._solve(shape.fragments))[: shape.length]
        if zlib.crc32(message) != shape.checksum:
            self._shape, self._rows = None, {}
            raise Unreadable("The series is complete, and its checksum is wrong: start over.")
        self._message = message

    def _solve(self, fragments: int) -> list[int]:
        solved = [0] * fragments
        # From the highest fragment down, each row holds nothing unsolved but its lowest.
        for index in reversed(range(fragments)):
            bits, total = self._rows[index]
            bits ^= 1 << index
            while bits:
                lowest = _lowest(bits)
                total ^= solved[lowest]
                bits ^= 1 << lowest
            solved[index] = total
        return solved


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
