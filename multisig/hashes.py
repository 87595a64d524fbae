"""The hash functions of Bitcoin.

RIPEMD-160 is here in Python as well, for machines whose OpenSSL has switched it off. Source: Dobbertin,
Bosselaers, Preneel, "RIPEMD-160: a strengthened version of RIPEMD" (1996), appendix A. It hashes public keys
only, so it need not be constant-time.
"""

import hashlib
import struct
from collections.abc import Callable

_MASK = 0xFFFFFFFF
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_ROUND = 16

# Which word of the block each step takes, and by how many bits it rotates: left line, right line.
_LEFT_WORDS = (
    *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    *(7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8),
    *(3, 10, 14, 4, 9, 15, 8, 1, 2, 7, 0, 6, 13, 11, 5, 12),
    *(1, 9, 11, 10, 0, 8, 12, 4, 13, 3, 7, 15, 14, 5, 6, 2),
    *(4, 0, 5, 9, 7, 12, 2, 10, 14, 1, 3, 8, 11, 6, 15, 13),
)
_RIGHT_WORDS = (
    *(5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3, 12),
    *(6, 11, 3, 7, 0, 13, 5, 10, 14, 15, 8, 12, 4, 9, 1, 2),
    *(15, 5, 1, 3, 7, 14, 6, 9, 11, 8, 12, 2, 10, 0, 4, 13),
    *(8, 6, 4, 1, 3, 11, 15, 0, 5, 12, 2, 13, 9, 7, 10, 14),
    *(12, 15, 10, 4, 1, 5, 8, 7, 6, 2, 13, 14, 0, 3, 9, 11),
)
_LEFT_SHIFTS = (
    *(11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    *(7, 6, 8, 13, 11, 9, 7, 15, 7, 12, 15, 9, 11, 7, 13, 12),
    *(11, 13, 6, 7, 14, 9, 13, 15, 14, 8, 13, 6, 5, 12, 7, 5),
    *(11, 12, 14, 15, 14, 15, 9, 8, 9, 14, 5, 6, 8, 6, 5, 12),
    *(9, 15, 5, 11, 6, 8, 13, 12, 5, 12, 13, 14, 11, 8, 5, 6),
)
_RIGHT_SHIFTS = (
    *(8, 9, 9, 11, 13, 15, 15, 5, 7, 7, 8, 11, 14, 14, 12, 6),
    *(9, 13, 15, 7, 12, 8, 9, 11, 7, 7, 12, 7, 6, 15, 13, 11),
    *(9, 7, 15, 11, 8, 6, 6, 14, 12, 13, 5, 14, 13, 13, 7, 5),
    *(15, 5, 8, 11, 14, 14, 6, 14, 6, 9, 12, 9, 12, 5, 15, 8),
    *(8, 5, 12, 9, 12, 5, 14, 6, 8, 13, 6, 5, 15, 13, 11, 11),
)
_LEFT_CONSTANTS = (0x00000000, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_RIGHT_CONSTANTS = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0x00000000)

_State = tuple[int, int, int, int, int]


def _portable_ripemd160(data: bytes) -> bytes:
    """The 20-byte digest."""
    padding = b"\x80" + bytes((55 - len(data)) % 64) + struct.pack("<Q", len(data) * 8)
    padded = data + padding
    state: _State = _START
    for offset in range(0, len(padded), 64):
        state = _compress(state, struct.unpack_from("<16I", padded, offset))
    return struct.pack("<5I", *state)


def _compress(state: _State, block: tuple[int, ...]) -> _State:
    left, right = state, state
    for step in range(5 * _ROUND):
        part = step // _ROUND
        left = _step(left, part, block[_LEFT_WORDS[step]] + _LEFT_CONSTANTS[part], _LEFT_SHIFTS[step])
        right = _step(
            right, 4 - part, block[_RIGHT_WORDS[step]] + _RIGHT_CONSTANTS[part], _RIGHT_SHIFTS[step]
        )
    return (
        (state[1] + left[2] + right[3]) & _MASK,
        (state[2] + left[3] + right[4]) & _MASK,
        (state[3] + left[4] + right[0]) & _MASK,
        (state[4] + left[0] + right[1]) & _MASK,
        (state[0] + left[1] + right[2]) & _MASK,
    )


def _step(state: _State, function: int, addend: int, shift: int) -> _State:
    a, b, c, d, e = state
    mixed = _rotate((a + _mix(function, b, c, d) + addend) & _MASK, shift)
    return e, (mixed + e) & _MASK, b, _rotate(c, 10), d


def _mix(function: int, x: int, y: int, z: int) -> int:
    if function == 0:
        return x ^ y ^ z
    if function == 1:
        return (x & y) | (~x & z)
    if function == 2:
        return (x | ~y) ^ z
    if function == 3:
        return (x & z) | (y & ~z)
    return x ^ (y | ~z)


def _rotate(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & _MASK


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def sha256d(data: bytes) -> bytes:
    """SHA-256 twice: transaction ids, block hashes, checksums."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def _native_ripemd160(data: bytes) -> bytes:
    return hashlib.new("ripemd160", data, usedforsecurity=False).digest()


def _choose_ripemd160() -> Callable[[bytes], bytes]:
    """OpenSSL 3.0 before 3.0.7 (Ubuntu 22.04) keeps RIPEMD-160 in a provider that is not loaded."""
    try:
        _native_ripemd160(b"")
    except ValueError:
        return _portable_ripemd160
    return _native_ripemd160


ripemd160 = _choose_ripemd160()


def hash160(data: bytes) -> bytes:
    """RIPEMD-160 of SHA-256, 20 bytes: key fingerprints, P2PKH, P2WPKH."""
    return ripemd160(sha256(data))
