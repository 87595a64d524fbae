"""Public child key derivation (BIP-32, CKDpub), with libsecp256k1 through coincurve.

Nodes are kept in bounded caches: all inputs of a transaction derive from the same few branches, and checking,
showing and finalising derive the same keys again. The cached values are public and depend only on their key.
"""

import hmac
from functools import lru_cache

from coincurve import PublicKey

from multisig.errors import InvalidKey

# Two branches of 15 cosigners in a few dozen vaults, and every key of a transaction of a thousand inputs and
# six cosigners. A key takes 400 bytes.
_BRANCHES_KEPT = 1024
_KEYS_KEPT = 6_144


def is_public_key(data: bytes) -> bool:
    """Whether `data` is a compressed public key on the curve."""
    if len(data) != 33 or data[0] not in {2, 3}:
        return False
    try:
        PublicKey(data)
    except ValueError:
        return False
    return True


def child(public_key: bytes, chain_code: bytes, index: int) -> tuple[bytes, bytes]:
    """Public key and chain code of the unhardened child `index`."""
    return _child_of(PublicKey(public_key), public_key, chain_code, index)


@lru_cache(maxsize=_KEYS_KEPT)
def grandchild(public_key: bytes, chain_code: bytes, branch: int, index: int) -> bytes:
    """The public key at /branch/index."""
    point, branch_key, branch_code = _branch(public_key, chain_code, branch)
    return _child_of(point, branch_key, branch_code, index)[0]


@lru_cache(maxsize=_BRANCHES_KEPT)
def _branch(public_key: bytes, chain_code: bytes, index: int) -> tuple[PublicKey, bytes, bytes]:
    branch_key, branch_code = child(public_key, chain_code, index)
    return PublicKey(branch_key), branch_key, branch_code


def _child_of(point: PublicKey, public_key: bytes, chain_code: bytes, index: int) -> tuple[bytes, bytes]:
    digest = hmac.digest(chain_code, public_key + index.to_bytes(4), "sha512")
    try:
        derived = point.add(digest[:32])
    except ValueError as error:
        # BIP-32: probability below 2^-127; proceed with the next index.
        raise InvalidKey(f"The key has no child {index}.") from error
    return derived.format(compressed=True), digest[32:]
