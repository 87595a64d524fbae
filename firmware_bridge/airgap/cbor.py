"""The CBOR that UR needs (RFC 8949, 4.2.1): numbers, strings, arrays, maps and tags of definite length, in
their shortest form. No negative numbers, no floats.
"""

from dataclasses import dataclass
from typing import Final

from firmware_bridge.airgap.transfer import BadTransfer

_UNSIGNED: Final = 0
_BYTES: Final = 2
_TEXT: Final = 3
_ARRAY: Final = 4
_MAP: Final = 5
_TAG: Final = 6
_BOOLEANS: Final = {0xF4: False, 0xF5: True}
# Additional information 24 to 26: the number is in the next one, two or four bytes. UR never needs eight.
_WIDTHS: Final = {24: 1, 25: 2, 26: 4}
# An account's path is nine levels down.
_MAX_DEPTH: Final = 16


@dataclass(frozen=True)
class Tag:
    """A tagged item."""

    number: int
    item: "Item"


Item = bool | int | bytes | str | tuple["Item", ...] | dict[int, "Item"] | Tag


def unsigned(number: int) -> bytes:
    return _head(_UNSIGNED, number)


def byte_string(data: bytes) -> bytes:
    return _head(_BYTES, len(data)) + data


def array(*items: bytes) -> bytes:
    """An array of encoded items."""
    return _head(_ARRAY, len(items)) + b"".join(items)


def _head(major: int, number: int) -> bytes:
    if number < min(_WIDTHS):
        return bytes([major << 5 | number])
    for code, width in _WIDTHS.items():
        if number < 1 << 8 * width:
            return bytes([major << 5 | code]) + number.to_bytes(width)
    raise ValueError(f"{number} does not fit in four bytes")


def item_of(data: bytes) -> Item:
    """The one item that these bytes encode. The keys of maps are numbers, each once.

    :raises BadTransfer: malformed, or with trailing bytes.
    """
    reader = _Reader(data)
    item = reader.item()
    reader.end()
    return item


class _Reader:
    """Reads one item after the other. Anything unexpected or missing is a `BadTransfer`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def end(self) -> None:
        if self._at != len(self._data):
            raise _malformed()

    def item(self, depth: int = 0) -> Item:  # noqa: PLR0911 - one line for each kind of item
        if depth > _MAX_DEPTH:
            raise _malformed()
        head = self._take(1)[0]
        if head in _BOOLEANS:
            return _BOOLEANS[head]
        self._at -= 1
        major = head >> 5
        number = self._number(major)
        if major == _UNSIGNED:
            return number
        if major == _BYTES:
            return self._take(number)
        if major == _TEXT:
            return self._text(number)
        if major == _ARRAY:
            return tuple(self.item(depth + 1) for _ in range(number))
        if major == _MAP:
            return self._map(number, depth)
        if major == _TAG:
            return Tag(number, self.item(depth + 1))
        raise _malformed()

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise _malformed() from None

    def _map(self, length: int, depth: int) -> dict[int, Item]:
        items: dict[int, Item] = {}
        for _ in range(length):
            key = self._number(_UNSIGNED)
            if key in items:
                raise _malformed()
            items[key] = self.item(depth + 1)
        return items

    def _number(self, major: int) -> int:
        head = self._take(1)[0]
        info = head & 0x1F
        if head >> 5 != major:
            raise _malformed()
        if info < min(_WIDTHS):
            return info
        if info not in _WIDTHS:
            raise _malformed()
        number = int.from_bytes(self._take(_WIDTHS[info]))
        if _head(major, number)[0] != head:
            raise _malformed()
        return number

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise _malformed()
        self._at += count
        return taken


def _malformed() -> BadTransfer:
    return BadTransfer("This QR code holds malformed CBOR.")
