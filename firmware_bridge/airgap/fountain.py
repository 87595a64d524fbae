"""Fountain codes of UR: a message as an endless series of parts, of which nearly any sufficient number
restores it (BCR-2024-001).
"""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from typing import Final, Self, cast

from firmware_bridge.airgap.cbor import array, byte_string, item_of, unsigned
from firmware_bridge.airgap.transfer import MAX_BYTES, MAX_PARTS, BadTransfer, OtherTransfer, Received

# With the CBOR length of the byte string.
_MAX_MESSAGE: Final = MAX_BYTES + 5
_PART_NUMBERS: Final = 1 << 32


@dataclass(frozen=True)
class FountainShape:
    """What all parts of a message share: the number of fragments, the length, the CRC-32."""

    fragments: int
    length: int
    checksum: int

    @property
    def fragment_length(self) -> int:
        return -(-self.length // self.fragments)


@dataclass(frozen=True)
class Part:
    """Part `number`, from 1 on: the XOR of its fragments."""

    shape: FountainShape
    number: int
    data: bytes

    def to_cbor(self) -> bytes:
        numbers = (self.number, self.shape.fragments, self.shape.length, self.shape.checksum)
        return array(*(unsigned(number) for number in numbers), byte_string(self.data))

    @classmethod
    def from_cbor(cls, data: bytes) -> Self:
        """:raises BadTransfer: malformed, inconsistent, or of a message that is too large."""
        found = item_of(data)
        # bool is an int.
        if not isinstance(found, tuple) or [type(item) for item in found] != [int] * 4 + [bytes]:
            raise BadTransfer("This QR code is not a part of a UR series.")
        number, fragments, length, checksum, data = cast("tuple[int, int, int, int, bytes]", found)
        if fragments > MAX_PARTS or length > _MAX_MESSAGE:
            raise BadTransfer(f"This series carries more than {MAX_BYTES} bytes or {MAX_PARTS} parts.")
        # The sender chooses the length of fragments, as long as the last one is needed.
        if not number or not fragments or not len(data) * (fragments - 1) < length <= len(data) * fragments:
            raise BadTransfer("This QR code contradicts itself.")
        return cls(FountainShape(fragments, length, checksum), number, data)


def parts(message: bytes, max_fragment: int, *, first: int = 1) -> Iterator[Part]:
    """The plain fragments in order, then mixtures, up to the largest part number: 34 years at four a second.

    :raises ValueError: the message is empty, or has more than `MAX_PARTS` fragments of at most `max_fragment`
        bytes; there is no part `first`.
    """
    if not 0 < first < _PART_NUMBERS:
        raise ValueError(f"the first part is number 1, and not {first}")
    fragments = -(-len(message) // max_fragment) if max_fragment > 0 else 0
    if not 0 < fragments <= MAX_PARTS:
        raise ValueError(
            f"{len(message)} bytes make no series of 1 to {MAX_PARTS} parts of {max_fragment} bytes"
        )
    shape = FountainShape(fragments, len(message), zlib.crc32(message))
    return _parts(message, shape, first)


def _parts(message: bytes, shape: FountainShape, first: int) -> Iterator[Part]:
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

    Each part is a linear equation over GF(2): a set of fragments as bits, and their sum. Equations are kept
    in echelon form: there are never more of them than fragments, and a part that adds nothing is dropped.
    """

    def __init__(self) -> None:
        self._shape: tuple[FountainShape, int] | None = None
        # lowest fragment -> (fragments as bits, their sum)
        self._rows: dict[int, tuple[int, int]] = {}
        self.message: bytes | None = None

    @property
    def started(self) -> bool:
        return self._shape is not None

    def add(self, part: Part) -> Received:
        """:raises OtherTransfer: a part of another message.
        :raises BadTransfer: the message is complete, but its checksum is wrong; the collector is reset.
        """
        shape = (part.shape, len(part.data))
        if self._shape not in {None, shape}:
            raise OtherTransfer
        self._shape = shape
        if self.message is None:
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

    def _finish(self, shape: FountainShape, size: int) -> None:
        message = b"".join(number.to_bytes(size) for number in self._solve(shape.fragments))[: shape.length]
        if zlib.crc32(message) != shape.checksum:
            self._shape, self._rows = None, {}
            raise BadTransfer("The series is complete, and its checksum is wrong: start over.")
        self.message = message

    def _solve(self, fragments: int) -> list[int]:
        solved = [0] * fragments
        # Going down from the highest fragment, a row has only its lowest fragment unsolved.
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


_MASK: Final = (1 << 64) - 1


# Sender and receiver derive the same fragments from the part's number and the message's checksum
# (BCR-2024-001, "The Consensus Stack"). The arithmetic is IEEE-754, as the standard demands. It is not
# cryptographic.
class Xoshiro256:
    """The xoshiro256** generator, seeded by a SHA-256."""

    def __init__(self, seed: bytes) -> None:
        digest = hashlib.sha256(seed).digest()
        self._state = [int.from_bytes(digest[start : start + 8]) for start in range(0, 32, 8)]

    def next(self) -> int:
        state = self._state
        result = _rotate(state[1] * 5 & _MASK, 7) * 9 & _MASK
        shifted = state[1] << 17 & _MASK
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = _rotate(state[3], 45)
        return result

    def fraction(self) -> float:
        """In [0, 1]; 1 only by rounding."""
        return self.next() / 2.0**64

    def below(self, limit: int) -> int:
        return min(int(self.fraction() * limit), limit - 1)


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


class Sampler:
    """Draws an index with a probability proportional to its weight (Walker's and Vose's alias method)."""

    def __init__(self, weights: Sequence[float]) -> None:
        # Not `sum`, which rounds differently from Python 3.12 on and would draw other fragments.
        count, total = len(weights), reduce(add, weights)
        self._share = [weight * count / total for weight in weights]
        self._alias = list(range(count))
        # In reverse order, as the standard has it: both sides must draw the same.
        small = [index for index in reversed(range(count)) if self._share[index] < 1]
        large = [index for index in reversed(range(count)) if self._share[index] >= 1]
        while small and large:
            poor, rich = small.pop(), large.pop()
            self._alias[poor] = rich
            self._share[rich] += self._share[poor] - 1
            (small if self._share[rich] < 1 else large).append(rich)
        for index in small + large:
            self._share[index] = 1.0

    def draw(self, random: Xoshiro256) -> int:
        index = random.below(len(self._share))
        return index if random.fraction() < self._share[index] else self._alias[index]


@lru_cache(maxsize=8)
def _degrees(count: int) -> Sampler:
    return Sampler([1 / degree for degree in range(1, count + 1)])


def draw_degree(count: int, random: Xoshiro256) -> int:
    """How many of `count` fragments are mixed: n with a weight of 1/n."""
    return _degrees(count).draw(random) + 1


def shuffled(items: Sequence[int], random: Xoshiro256, count: int) -> list[int]:
    """`count` random items, in the order drawn."""
    remaining = list(items)
    return [remaining.pop(random.below(len(remaining))) for _ in range(count)]


def fragments_of(number: int, count: int, checksum: int) -> frozenset[int]:
    """The fragments in part `number` (from 1 on) of a message of `count` fragments."""
    if number <= count:
        return frozenset({number - 1})
    random = Xoshiro256(number.to_bytes(4) + checksum.to_bytes(4))
    degree = draw_degree(count, random)
    return frozenset(shuffled(range(count), random, degree))
