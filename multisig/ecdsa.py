"""ECDSA with libsecp256k1: signatures of transactions (BIP-66, BIP-146) and of messages (BIP-137)."""

from functools import lru_cache

from multisig import secp256k1
from multisig.errors import InvalidMessage
from multisig.hashes import sha256d
from multisig.wire import with_length

# Enough for a few transactions of a hundred inputs: accepting, counting and finalising verify the same
# signatures. Bitcoin Core has such a cache too (script/sigcache.h).
_SIGNATURES_KEPT = 1024
_HALF_ORDER = 0x7FFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFF_5D576E73_57A4501D_DFE92F46_681B20A0
_INTEGER_TAG, _SEQUENCE_TAG = 0x02, 0x30


def signature_fault(der: bytes) -> str | None:
    """Why a signature (without sighash byte) is not low-S strict DER, as a clause; None where it is."""
    numbers = _parse_der(der)
    if numbers is None:
        return "it is not strict DER"
    r, s = numbers
    if not r or not s:
        return "one of its numbers is zero"
    if s > _HALF_ORDER:
        return "its S is high"
    return None


def _parse_der(der: bytes) -> tuple[int, int] | None:
    """The r and s of a strictly encoded signature (BIP-66); None for anything else."""
    if not 8 <= len(der) <= 72 or der[0] != _SEQUENCE_TAG or der[1] != len(der) - 2:
        return None
    r_length = der[3]
    if 6 + r_length > len(der):
        return None
    r, s = _parse_integer(der[2 : 4 + r_length]), _parse_integer(der[4 + r_length :])
    return None if r is None or s is None else (r, s)


def _parse_integer(field: bytes) -> int | None:
    tag, length, body = field[0], field[1], field[2:]
    if tag != _INTEGER_TAG or length != len(body) or not body or body[0] & 0x80:
        return None
    if len(body) > 1 and body[0] == 0 and not body[1] & 0x80:
        return None
    return int.from_bytes(body)


def verify_ecdsa(pubkey: bytes, digest: bytes, der: bytes) -> bool:
    """Whether `der` (strict DER, low S, without sighash byte) is the signature of the 32-byte `digest`.

    Only compressed keys verify, as segwit has no others (BIP-143, Restrictions on public key type).
    """
    if len(pubkey) != 33 or len(digest) != 32 or signature_fault(der) is not None:
        return False
    return _verify(pubkey, digest, der)


# Cached after the lengths were checked, so that entries are small.
_verify = lru_cache(maxsize=_SIGNATURES_KEPT)(secp256k1.verify)


_MAGIC = b"Bitcoin Signed Message:\n"
_SIGNATURE_BYTES = 65
# BIP-137: four headers each for uncompressed P2PKH, compressed P2PKH, P2SH-P2WPKH, P2WPKH.
_FIRST_HEADER, _LAST_HEADER = 27, 42


def message_hash(text: str) -> bytes:
    """The 32-byte digest of `text` as a signed message. Raises InvalidMessage for a lone surrogate."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidMessage("The message cannot be encoded in UTF-8.") from error
    return sha256d(with_length(_MAGIC) + with_length(encoded))


def recover_message_key(text: str, signature65: bytes) -> bytes:
    """The compressed public key that made the 65-byte signature (header, R, S) of `text`.

    Vendors disagree about the header for a native segwit address, so only its recovery id is used. The caller
    compares the key: any well-formed signature recovers to some key. Raises InvalidMessage.
    """
    if len(signature65) != _SIGNATURE_BYTES:
        raise InvalidMessage("The signature of a message has 65 bytes.")
    header, body = signature65[0], signature65[1:]
    if not _FIRST_HEADER <= header <= _LAST_HEADER:
        raise InvalidMessage("The signature's first byte is not one that a device writes.")
    try:
        return secp256k1.recovered_public_key(message_hash(text), body, (header - _FIRST_HEADER) & 3)
    except ValueError as error:
        raise InvalidMessage("No key can have made this signature.") from error
