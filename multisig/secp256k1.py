"""The curve secp256k1, through libsecp256k1. No other module imports its binding (ADR 2).

Public keys are 33 bytes compressed (SEC 1, 2.3.3) unless it says otherwise, and are taken uncompressed in 65
bytes, too; private keys, tweaks and digests are 32 bytes. What is no key, tweak or signature raises
ValueError, where nothing else is said.
"""

from btclib_secp256k1 import dsa, ecdh, keys, recovery, ssa, xonly

public_key_of = keys.pubkey_from_prvkey
"""Of a private key."""
tweaked_public_key = keys.pubkey_tweak_add
"""Of a public key P and a tweak: P + tweak × G (BIP-32, CKDpub)."""
tweaked_private_key = keys.prvkey_tweak_add
"""Of a private key k and a tweak: k + tweak (BIP-32, CKDpriv)."""
recovered_public_key = recovery.recover
"""Of a digest, the 64 bytes R and S of a signature, and the recovery id, 0 to 3: the key that made it."""


def is_public_key(data: bytes) -> bool:
    """Whether `data` is a compressed public key on the curve."""
    return len(data) == 33 and keys.pubkey_verify(data)


def is_x_only_public_key(data: bytes) -> bool:
    """Whether `data` is a 32-byte public key of BIP-340."""
    return len(data) == 32 and xonly.pubkey_verify(data)


def uncompressed(public_key: bytes) -> bytes:
    """The same key in 65 bytes. It is read eight times as fast."""
    return keys.reserialize(public_key, compressed=False)


def sign(private_key: bytes, digest: bytes) -> bytes:
    """ECDSA: strict DER, low S, the nonce of RFC 6979, without a sighash byte."""
    return dsa.sign(digest, private_key)


def verify(public_key: bytes, digest: bytes, der: bytes) -> bool:
    """Whether `der`, with a low S, is the ECDSA signature of `digest`. False for what is no key or no DER."""
    try:
        return dsa.verify(digest, public_key, der)
    except ValueError:
        return False


def sign_recoverable(private_key: bytes, digest: bytes) -> tuple[bytes, int]:
    """The 64 bytes R and S of `sign`, and the recovery id."""
    return recovery.sign(digest, private_key)


def x_only_public_key_of(private_key: bytes) -> bytes:
    """The 32 bytes of BIP-340."""
    return xonly.from_prvkey(private_key)[0]


def sign_schnorr(private_key: bytes, message: bytes, aux: bytes) -> bytes:
    """The 64 bytes of BIP-340; `aux` is 32 random bytes."""
    return ssa.sign(message, private_key, aux)


def verify_schnorr(x_only: bytes, message: bytes, signature: bytes) -> bool:
    """BIP-340, Verification. False for what is no key or no signature."""
    if len(x_only) != 32:
        return False
    try:
        return ssa.verify(message, x_only, signature)
    except ValueError:
        return False


def shared_point(private_key: bytes, public_key: bytes) -> bytes:
    """The point of a Diffie-Hellman exchange, 65 bytes uncompressed."""
    return ecdh.shared_point(public_key, private_key, compressed=False)
