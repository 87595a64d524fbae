"""Deterministic signers, vaults, coins and signatures. Only tests have private keys: multisig has none."""

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from device_simulators.seed import Seed
from multisig import (
    HARDENED,
    SIGHASH_ALL,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    KeyOrigin,
    Network,
    OriginKey,
    Profile,
    Psbt,
    SighashCache,
    Vault,
    hash160,
    multisig_account_path,
    p2pkh,
    profile_account_path,
    secp256k1,
)
from tests.conformance.payments import *  # noqa: F403 - the spends of the suite stand beside the people who sign them

ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141


@dataclass(frozen=True)
class PrivateNode:
    """A private key with its chain code (BIP-32)."""

    key: bytes
    chain_code: bytes
    depth: int = 0
    parent: bytes = bytes(4)
    number: int = 0

    @property
    def public_key(self) -> bytes:
        return secp256k1.public_key_of(self.key)

    def child(self, number: int) -> "PrivateNode":
        data = b"\x00" + self.key if number >= HARDENED else self.public_key
        digest = hmac.digest(self.chain_code, data + number.to_bytes(4), "sha512")
        key = (int.from_bytes(digest[:32]) + int.from_bytes(self.key)) % ORDER
        return PrivateNode(
            key.to_bytes(32), digest[32:], self.depth + 1, hash160(self.public_key)[:4], number
        )


class Keys(ABC):
    """Whose private keys are known: what follows from them for a vault, a profile and a PSBT."""

    network = Network.REGTEST

    @property
    @abstractmethod
    def fingerprint(self) -> Fingerprint: ...

    @abstractmethod
    def origin_key(self, path: DerivationPath, network: Network | None = None) -> OriginKey:
        """The extended public key at a path, with its origin."""

    @abstractmethod
    def signature(self, key: bytes, path: DerivationPath, digest: bytes) -> bytes:
        """By the key at the path, which a PSBT states as this one."""

    def vault_key(self, network: Network | None = None, account: int = 0) -> OriginKey:
        network = network or self.network
        return self.origin_key(multisig_account_path(network, account), network)

    def profile(self, network: Network | None = None) -> Profile:
        network = network or self.network
        return Profile(network, self.origin_key(profile_account_path(network), network))

    def sign(self, psbt: Psbt, *, sighash: int = SIGHASH_ALL, inputs: Sequence[int] | None = None) -> Psbt:
        """Signs without checks every input (or ``inputs``) with a key origin of this signer."""
        chosen = range(len(psbt.inputs)) if inputs is None else inputs
        return psbt.with_signatures(
            {index: self.signatures(psbt, index, sighash=sighash) for index in chosen}
        )

    def signatures(self, psbt: Psbt, index: int, *, sighash: int = SIGHASH_ALL) -> dict[bytes, bytes]:
        """This signer's partial signatures of one input, with the amount that the PSBT states."""
        item = psbt.inputs[index]
        assert item.witness_utxo is not None
        signatures = {}
        for key, origin in item.derivations.items():
            if origin.fingerprint != self.fingerprint:
                continue
            code = item.witness_script if item.witness_script is not None else p2pkh(hash160(key))
            digest = SighashCache(psbt.tx).segwit_v0(index, code, item.witness_utxo.amount, sighash)
            signatures[key] = self.signature(key, origin.path, digest) + bytes((sighash,))
        return signatures


@dataclass(frozen=True)
class Signer(Keys):
    """A person whose seed follows from the name."""

    name: str

    @property
    def master(self) -> PrivateNode:
        return _master(self.name)

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(hash160(self.master.public_key)[:4])

    def private_node(self, path: Iterable[int]) -> PrivateNode:
        return _node(self.name, tuple(path))

    def origin_key(self, path: DerivationPath, network: Network | None = None) -> OriginKey:
        node = self.private_node(path)
        xpub = ExtendedPublicKey(
            (network or self.network).kind,
            node.depth,
            Fingerprint(node.parent),
            node.number,
            node.chain_code,
            node.public_key,
        )
        return OriginKey(KeyOrigin(self.fingerprint, path), xpub)

    def signature(self, key: bytes, path: DerivationPath, digest: bytes) -> bytes:
        private = self.private_node(path)
        assert private.public_key == key, "the origin does not lead to the key"
        return secp256k1.sign(private.key, digest)


@dataclass(frozen=True)
class Holder(Keys):
    """Who has a virtual device's seed, and signs as a device does that believes the PSBT."""

    seed: Seed
    network: Network = Network.REGTEST

    @property
    def fingerprint(self) -> Fingerprint:
        return self.seed.fingerprint

    def origin_key(self, path: DerivationPath, network: Network | None = None) -> OriginKey:
        return OriginKey(KeyOrigin(self.fingerprint, path), self.seed.xpub(path, network or self.network))

    def signature(self, key: bytes, path: DerivationPath, digest: bytes) -> bytes:
        return self.seed.sign(path, digest)


@cache
def _master(name: str) -> PrivateNode:
    digest = hmac.digest(b"Bitcoin seed", hashlib.sha256(name.encode()).digest(), "sha512")
    return PrivateNode(digest[:32], digest[32:])


@cache
def _node(name: str, path: tuple[int, ...]) -> PrivateNode:
    return _node(name, path[:-1]).child(path[-1]) if path else _master(name)


ALICE, BOB, CAROL, MALLORY = (Signer(name) for name in ("alice", "bob", "carol", "mallory"))
THREE = (ALICE, BOB, CAROL)


def make_vault(
    signers: Sequence[Keys] = THREE, threshold: int = 2, *, network: Network | None = None, account: int = 0
) -> Vault:
    network = network or signers[0].network
    return Vault(network, threshold, tuple(signer.vault_key(network, account) for signer in signers))
