"""ECDSA verification with libsecp256k1: strict DER and low S only (BIP-66, BIP-146).

coincurve is libsecp256k1 itself and cannot be imported without it; there is no slow Python to fall back to in silence.
"""

from functools import lru_cache

from coincurve import PublicKey

# Those of a few transactions with a hundred inputs: who takes signatures counts and finalises them next, and asks about
# the same ones again. Bitcoin Core keeps them too (script/sigcache.h).
_SIGNATURES_KEPT = 1024
_HALF_ORDER = 0x7FFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFF_5D576E73_57A4501D_DFE92F46_681B20A0
_INTEGER_TAG, _SEQUENCE_TAG = 0x02, 0x30


def signature_fault(der: bytes) -> str | None:
    """Why a signature (without sighash byte) is not in the only form taken, as a clause; None where it is."""
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
    """The two numbers of a strictly encoded signature (BIP-66); None for anything else."""
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


# Behind the look at their lengths: what is kept is small, and depends on nothing but these bytes.
@lru_cache(maxsize=_SIGNATURES_KEPT)
def _verify(pubkey: bytes, digest: bytes, der: bytes) -> bool:
    try:
        return PublicKey(pubkey).verify(der, digest, hasher=None)
    except ValueError:
        return False
