"""Unsigned LEB128: seven bits a byte, least significant first, the high bit where more follow. One form per number.

The bound below 2^63 makes nine bytes the most there can be, so that nobody has to decide what a tenth byte means.
"""

from multisig.wire import Reader, WireError

MAX_LEB128 = 2**63 - 1
_BITS = 63


def leb128(number: int) -> bytes:
    """The shortest form of 0 to 2^63 - 1; ValueError outside, which no validated amount is."""
    if not 0 <= number <= MAX_LEB128:
        raise ValueError("only numbers from 0 to 2^63 - 1 are written")
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def read_leb128(reader: Reader) -> int:
    """The next number. Raises WireError where it ends too early, is not in its shortest form, or is 2^63 or more."""
    number = 0
    for shift in range(0, _BITS, 7):
        byte = reader.take(1)[0]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if not byte and shift:
                raise WireError("a number is not in its shortest form")
            return number
    raise WireError("a number is longer than nine bytes")
