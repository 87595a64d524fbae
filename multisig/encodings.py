"""The two text encodings with a checksum: Base58Check (extended keys, and the addresses before segwit), and
Bech32 and Bech32m with the segwit addresses made of them (BIP-173, BIP-350).
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import reduce
from operator import xor

from multisig.hashes import sha256d

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE58_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
_CHECKSUM_BYTES = 4
# An extended key has 111 characters. Conversion is quadratic, so longer texts are refused.
MAX_BASE58_CHARACTERS = 128


class Base58Error(ValueError):
    """Not Base58Check. The caller raises its own error, which says what the text should have been."""


def encode_base58check(payload: bytes) -> str:
    """`payload` with its four checksum bytes in Base58."""
    return _encode_base58(payload + sha256d(payload)[:_CHECKSUM_BYTES])


def decode_base58check(text: str) -> bytes:
    """The payload without its checksum. Raises Base58Error."""
    data = _decode_base58(text)
    payload, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if len(data) < _CHECKSUM_BYTES or sha256d(payload)[:_CHECKSUM_BYTES] != checksum:
        raise Base58Error("the checksum is wrong: a character is mistyped or missing")
    return payload


def _encode_base58(data: bytes) -> str:
    number, characters = int.from_bytes(data), []
    while number:
        number, value = divmod(number, 58)
        characters.append(_ALPHABET[value])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return _ALPHABET[0] * zeros + "".join(reversed(characters))


def _decode_base58(text: str) -> bytes:
    if len(text) > MAX_BASE58_CHARACTERS:
        raise Base58Error("it is too long")
    number = 0
    for character in text:
        value = _BASE58_VALUES.get(character)
        if value is None:
            raise Base58Error("it has a character that Base58 does not use")
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip(_ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)


_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_VALUES = {character: value for value, character in enumerate(_CHARSET)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# What the five bits that are shifted out add to the remainder, for each of their 32 values.
_REDUCTION = tuple(
    reduce(xor, (generator for bit, generator in enumerate(_GENERATOR) if top >> bit & 1), 0)
    for top in range(32)
)
_CHECKSUM_LENGTH = 6
# BIP-173: the error detection holds up to here.
MAX_BECH32_CHARACTERS = 90


class Encoding(IntEnum):
    """The constant that the checksum must leave (BIP-350)."""

    BECH32 = 1
    BECH32M = 0x2BC830A3


class Bech32Error(ValueError):
    """Not Bech32, or not a segwit address. The caller raises its own error."""


def encode_bech32(hrp: str, values: Sequence[int], encoding: Encoding) -> str:
    """The lower-case text of five-bit `values` under `hrp`."""
    expanded = _expand(hrp)
    residue = _polymod([*expanded, *values, *([0] * _CHECKSUM_LENGTH)]) ^ encoding
    checksum = [(residue >> 5 * (5 - i)) & 31 for i in range(_CHECKSUM_LENGTH)]
    return hrp + "1" + "".join(_CHARSET[value] for value in (*values, *checksum))


def decode_bech32(text: str) -> tuple[str, list[int], Encoding]:
    """The human-readable part, the five-bit values without the checksum, and the encoding. Raises
    Bech32Error.
    """
    hrp, data = _split(text)
    values = [_BECH32_VALUES.get(character, -1) for character in data]
    if -1 in values:
        raise Bech32Error("it has a character that Bech32 does not use")
    try:
        encoding = Encoding(_polymod([*_expand(hrp), *values]))
    except ValueError as error:
        raise Bech32Error("the checksum is wrong: a character is mistyped or missing") from error
    return hrp, values[:-_CHECKSUM_LENGTH], encoding


def _split(text: str) -> tuple[str, str]:
    if len(text) > MAX_BECH32_CHARACTERS:
        raise Bech32Error("it is too long")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise Bech32Error("it has a character that is not printable ASCII")
    lower = text.lower()
    if text not in {lower, text.upper()}:
        raise Bech32Error("it mixes upper and lower case")
    hrp, separator, data = lower.rpartition("1")
    if not separator or not hrp or len(data) < _CHECKSUM_LENGTH:
        raise Bech32Error("a part of it is missing")
    return hrp, data


def _expand(hrp: str) -> list[int]:
    return [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp]


def _polymod(values: Iterable[int]) -> int:
    residue = 1
    for value in values:
        residue = (residue & 0x1FFFFFF) << 5 ^ value ^ _REDUCTION[residue >> 25]
    return residue


def encode_segwit(hrp: str, version: int, program: bytes) -> str:
    """The segwit address of a witness program. Raises Bech32Error."""
    _check_program(version, program)
    encoding = Encoding.BECH32 if version == 0 else Encoding.BECH32M
    return encode_bech32(hrp, [version, *_regroup(program, 8, 5, pad=True)], encoding)


def decode_segwit(hrp: str, text: str) -> tuple[int, bytes]:
    """Witness version and program of a segwit address under `hrp`. Raises Bech32Error."""
    prefix, values, encoding = decode_bech32(text)
    if prefix != hrp:
        raise Bech32Error(f"it starts with {prefix!r} and not with {hrp!r}")
    if not values:
        raise Bech32Error("the witness version is missing")
    version, program = values[0], bytes(_regroup(values[1:], 5, 8, pad=False))
    _check_program(version, program)
    if encoding is not (Encoding.BECH32 if version == 0 else Encoding.BECH32M):
        raise Bech32Error("its checksum is of the kind for another witness version")
    return version, program


def _check_program(version: int, program: bytes) -> None:
    if not 0 <= version <= 16:
        raise Bech32Error("there is no such witness version")
    if not 2 <= len(program) <= 40:
        raise Bech32Error("the witness program has an impossible length")
    if version == 0 and len(program) not in {20, 32}:
        raise Bech32Error("a version 0 witness program has 20 or 32 bytes")


def _regroup(values: Iterable[int], from_bits: int, to_bits: int, *, pad: bool) -> list[int]:
    accumulator, bits, groups = 0, 0, []
    for value in values:
        accumulator = (accumulator << from_bits | value) & 0xFFF
        bits += from_bits
        while bits >= to_bits:
            bits -= to_bits
            groups.append(accumulator >> bits & ((1 << to_bits) - 1))
    rest = accumulator & ((1 << bits) - 1)
    if pad:
        return [*groups, rest << (to_bits - bits)] if bits else groups
    if bits >= from_bits or rest:
        raise Bech32Error("the padding is wrong")
    return groups
