"""The hash functions of Bitcoin."""

import hashlib
from collections.abc import Callable


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def sha256d(data: bytes) -> bytes:
    """SHA-256 twice: transaction ids, block hashes, checksums."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def _native_ripemd160(data: bytes) -> bytes:
    return hashlib.new("ripemd160", data, usedforsecurity=False).digest()


def _choose_ripemd160() -> Callable[[bytes], bytes]:
    """OpenSSL 3.0 before 3.0.7 (Ubuntu 22.04) keeps RIPEMD-160 in a provider that is not loaded. The one in
    Python hashes public keys only, so it need not be constant-time.
    """
    try:
        _native_ripemd160(b"")
    except ValueError:
        from embit.util import py_ripemd160

        portable: Callable[[bytes], bytes] = py_ripemd160.ripemd160
        return portable
    return _native_ripemd160


ripemd160 = _choose_ripemd160()


def hash160(data: bytes) -> bytes:
    """RIPEMD-160 of SHA-256, 20 bytes: key fingerprints, P2PKH, P2WPKH."""
    return ripemd160(sha256(data))
