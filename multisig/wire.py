"""Bitcoin's byte format: little-endian integers and compact sizes, read strictly and within bounds."""

from collections.abc import Sequence


class WireError(ValueError):
    """Bytes that end too early, or a number not in its canonical form. The caller raises its own error."""


def compact_size(number: int) -> bytes:
    """The shortest, and only valid, encoding of a length."""
    if number < 0xFD:
        return number.to_bytes(1)
    if number <= 0xFFFF:
        return b"\xfd" + number.to_bytes(2, "little")
    if number <= 0xFFFF_FFFF:
        return b"\xfe" + number.to_bytes(4, "little")
    return b"\xff" + number.to_bytes(8, "little")


def with_length(data: bytes) -> bytes:
    """`data` behind its length."""
    return compact_size(len(data)) + data


def with_count(items: Sequence[bytes]) -> bytes:
    """Each of `items` behind its length, all behind their number."""
    return compact_size(len(items)) + b"".join([with_length(item) for item in items])


class Reader:
    """Reads `data` once, from front to back. Every method raises WireError where the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._end = data, len(data)
        self.offset = 0

    @property
    def remaining(self) -> int:
        return self._end - self.offset

    def take(self, length: int) -> bytes:
        end = self.offset + length
        if end > self._end:
            raise WireError("it ends too early")
        piece = self._data[self.offset : end]
        self.offset = end
        return piece

    def peek(self, length: int) -> bytes:
        """Up to `length` bytes from here, without advancing."""
        return self._data[self.offset : self.offset + length]

    def uint(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def compact_size(self) -> int:
        first = self.take(1)[0]
        if first < 0xFD:
            return first
        length = 1 << (first - 0xFC)
        number = self.uint(length)
        if number < (0xFD, 0x1_0000, 0x1_0000_0000)[first - 0xFD]:
            raise WireError("a length is not in its shortest form")
        return number

    def sized(self) -> bytes:
        """Bytes that stand behind their length."""
        return self.take(self.compact_size())

    def count(self, least_bytes: int) -> int:
        """A number of items of at least `least_bytes` each, refused where they cannot all be here."""
        number = self.compact_size()
        if number * least_bytes > self.remaining:
            raise WireError("it announces more items than it has")
        return number

    def finish(self) -> None:
        if self.remaining:
            raise WireError("bytes follow its end")
