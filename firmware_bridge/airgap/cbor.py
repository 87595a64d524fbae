"""As much of CBOR as UR needs: unsigned numbers, byte strings and one flat array, in their shortest form (RFC 8949, 4.2.1)."""

from typing import Final

from firmware_bridge.airgap.outcomes import Unreadable

_UNSIGNED: Final = 0
_BYTES: Final = 2
_ARRAY: Final = 4
# Additional information 24 to 26: the number stands in the next one, two or four bytes. Nothing of ours needs eight.
_WIDTHS: Final = {24: 1, 25: 2, 26: 4}


def unsigned(number: int) -> bytes:
    return _head(_UNSIGNED, number)


def byte_string(data: bytes) -> bytes:
    return _head(_BYTES, len(data)) + data


def array(*items: bytes) -> bytes:
    """Of items that are encoded already."""
    return _head(_ARRAY, len(items)) + b"".join(items)


def _head(major: int, number: int) -> bytes:
    if number < min(_WIDTHS):
        return bytes([major << 5 | number])
    for code, width in _WIDTHS.items():
        if number < 1 << 8 * width:
            return bytes([major << 5 | code]) + number.to_bytes(width)
    raise ValueError(f"{number} does not fit in four bytes")


class Reader:
    """Reads one item after the other; whatever else is there, or missing, is refused."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def unsigned(self) -> int:
        return self._number(_UNSIGNED)

    def byte_string(self) -> bytes:
        return self._take(self._number(_BYTES))

    def array(self) -> int:
        """How many items follow."""
        return self._number(_ARRAY)

    def end(self) -> None:
        if self._rest:
            raise _malformed()

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
        taken, self._rest = self._rest[:count], self._rest[count:]
        if len(taken) != count:
            raise _malformed()
        return taken


def _malformed() -> Unreadable:
    return Unreadable("This QR code holds malformed CBOR.")
