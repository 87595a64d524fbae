"""The secret of a virtual device: BIP-39 words, BIP-32 private derivation, and the two kinds of signature.

Private keys live here and nowhere else in this project; everything above `device_simulators` sees public keys
only.
"""

import hashlib
import hmac
from functools import lru_cache
from typing import Self

from mnemonic import Mnemonic

from device_simulators.errors import InvalidSeed
from multisig import HARDENED, DerivationPath, ExtendedPublicKey, Fingerprint, Network, hash160, secp256k1

COMPACT_HEADER_P2PKH = 31
"""First byte of a 65-byte message signature by a compressed key, before the recovery id is added (Bitcoin
Core's convention).
"""

_WORDS = Mnemonic("english")


class Seed:
    """One BIP-39 mnemonic with its passphrase.

    Deterministic: nonces follow RFC 6979, so the same request gives the same signature.
    """

    def __init__(self, words: str, passphrase: str = "") -> None:
        normal = " ".join(words.split()).lower()
        if not _WORDS.check(normal):
            raise InvalidSeed(
                "these words are not a BIP-39 mnemonic: a word is not in the list, or the checksum is wrong"
            )
        self._words = normal
        seed = Mnemonic.to_seed(normal, passphrase)
        digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
        self._symmetric = hmac.digest(b"Symmetric key seed", seed, "sha512")
        self._master = _Node(digest[:32], digest[32:], 0, Fingerprint(bytes(4)), 0)

    @classmethod
    def from_mnemonic(cls, words: str) -> Self:
        """From 12 to 24 English words (BIP-39).

        :raises InvalidSeed: the words fail the checksum.
        """
        return cls(words)

    @classmethod
    def from_entropy(cls, entropy: bytes) -> Self:
        """From 16, 20, 24, 28 or 32 bytes (BIP-39).

        :raises InvalidSeed: another length.
        """
        if len(entropy) not in {16, 20, 24, 28, 32}:
            raise InvalidSeed(f"{len(entropy)} bytes of entropy; BIP-39 takes 16, 20, 24, 28 or 32")
        return cls(_WORDS.to_mnemonic(entropy))

    def with_passphrase(self, passphrase: str) -> "Seed":
        """The wallet of the same words under another passphrase."""
        return Seed(self._words, passphrase)

    @property
    def fingerprint(self) -> Fingerprint:
        return self._master.fingerprint

    def xpub(self, path: DerivationPath, network: Network) -> ExtendedPublicKey:
        return self._node(path).xpub(network)

    def public_key(self, path: DerivationPath) -> bytes:
        """Compressed, 33 bytes."""
        return self._node(path).public_key

    def symmetric_key(self, label: bytes) -> bytes:
        """The 32-byte key under this label (SLIP-21): for what a device recognises later as its own."""
        return hmac.digest(self._symmetric[:32], b"\x00" + label, "sha512")[32:]

    def sign(self, path: DerivationPath, digest: bytes) -> bytes:
        """ECDSA over a 32-byte digest: strict DER, low S, RFC 6979 nonce, no sighash byte."""
        return secp256k1.sign(self._node(path).key, digest)

    def sign_recoverable(
        self, path: DerivationPath, digest: bytes, *, header: int = COMPACT_HEADER_P2PKH
    ) -> bytes:
        """65 bytes: `header` plus recovery id, r, s. Makers differ in the header, so it is a parameter."""
        signature, recovery_id = secp256k1.sign_recoverable(self._node(path).key, digest)
        return bytes([header + recovery_id]) + signature

    def __repr__(self) -> str:
        return f"Seed(fingerprint={self.fingerprint}, words=***)"

    def _node(self, path: DerivationPath) -> "_Node":
        node = self._master
        for step in path:
            node = _child(node, step)
        return node


class _Node:
    """A BIP-32 extended private key."""

    def __init__(
        self, key: bytes, chain_code: bytes, depth: int, parent: Fingerprint, child_number: int
    ) -> None:
        self.key = key
        self.public_key = secp256k1.public_key_of(key)
        self.chain_code = chain_code
        self.depth = depth
        self.parent = parent
        self.child_number = child_number

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(hash160(self.public_key)[:4])

    def xpub(self, network: Network) -> ExtendedPublicKey:
        return ExtendedPublicKey(
            kind=network.kind,
            depth=self.depth,
            parent_fingerprint=self.parent,
            child_number=self.child_number,
            chain_code=self.chain_code,
            public_key=self.public_key,
        )

    def __repr__(self) -> str:
        return f"_Node(depth={self.depth}, key=***)"


@lru_cache(maxsize=1024)
def _child(node: _Node, index: int) -> _Node:
    """CKDpriv of BIP-32. A tweak out of range, one in 2^127, raises ValueError.

    Cached, because every key and every signature of an account walks the same first steps.
    """
    parent = b"\x00" + node.key if index & HARDENED else node.public_key
    digest = hmac.digest(node.chain_code, parent + index.to_bytes(4, "big"), hashlib.sha512)
    key = secp256k1.tweaked_private_key(node.key, digest[:32])
    return _Node(key, digest[32:], node.depth + 1, node.fingerprint, index)
