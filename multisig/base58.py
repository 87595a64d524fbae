"""Base58Check: extended keys and the addresses before segwit."""

from multisig.hashes import sha256d

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
_CHECKSUM_BYTES = 4
# An extended key has 111 characters. Conversion is quadratic, so longer texts are refused.
MAX_CHARACTERS = 128


class Base58Error(ValueError):
    """Not Base58Check. The caller raises its own error, which says what the text should have been."""


def encode_check(payload: bytes) -> str:
    """`payload` with its four checksum bytes in Base58."""
    return _encode(payload + sha256d(payload)[:_CHECKSUM_BYTES])


def decode_check(text: str) -> bytes:
    """The payload without its checksum. Raises Base58Error."""
    data = _decode(text)
    payload, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if len(data) < _CHECKSUM_BYTES or sha256d(payload)[:_CHECKSUM_BYTES] != checksum:
        raise Base58Error("the checksum is wrong: a character is mistyped or missing")
    return payload


def _encode(data: bytes) -> str:
    number, characters = int.from_bytes(data), []
    while number:
        number, value = divmod(number, 58)
        characters.append(_ALPHABET[value])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return _ALPHABET[0] * zeros + "".join(reversed(characters))


def _decode(text: str) -> bytes:
    if len(text) > MAX_CHARACTERS:
        raise Base58Error("it is too long")
    number = 0
    for character in text:
        value = _VALUES.get(character)
        if value is None:
            raise Base58Error("it has a character that Base58 does not use")
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip(_ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)
