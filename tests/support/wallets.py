"""Deterministic signers, vaults, coins and signatures. Only tests have private keys: multisig has none."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from device_simulators.seed import Seed, _Node
from multisig import (
    SIGHASH_ALL,
    DerivationPath,
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
)
from tests.conformance.payments import *  # noqa: F403 - the spends of the suite stand beside the people who sign them

ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141


class Keys:
    """Whose private keys are known: what follows from them for a vault, a profile and a PSBT."""

    seed: Seed
    network = Network.REGTEST

    @property
    def fingerprint(self) -> Fingerprint:
        return self.seed.fingerprint

    def origin_key(self, path: DerivationPath, network: Network | None = None) -> OriginKey:
        """The extended public key at a path, with its origin."""
        return OriginKey(KeyOrigin(self.fingerprint, path), self.seed.xpub(path, network or self.network))

    def signature(self, _key: bytes, path: DerivationPath, digest: bytes) -> bytes:
        """By the key at the path, which a PSBT states as this one."""
        return self.seed.sign(path, digest)

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


class NamedSeed(Seed):
    """It follows from a name, and has no words."""

    def __init__(self, name: str) -> None:
        digest = hmac.digest(b"Bitcoin seed", hashlib.sha256(name.encode()).digest(), "sha512")
        self._master = _Node(digest[:32], digest[32:], 0, Fingerprint(bytes(4)), 0)


_seed_of = cache(NamedSeed)


@dataclass(frozen=True)
class Signer(Keys):
    """A person whose seed follows from the name."""

    name: str

    @property
    def seed(self) -> Seed:
        return _seed_of(self.name)

    def private_node(self, path: Iterable[int]) -> _Node:
        return self.seed._node(DerivationPath(tuple(path)))

    def signature(self, key: bytes, path: DerivationPath, digest: bytes) -> bytes:
        assert self.seed.public_key(path) == key, "the origin does not lead to the key"
        return super().signature(key, path, digest)


@dataclass(frozen=True)
class Holder(Keys):
    """Who has a virtual device's seed, and signs as a device does that believes the PSBT."""

    seed: Seed
    network: Network = Network.REGTEST


ALICE, BOB, CAROL, MALLORY = (Signer(name) for name in ("alice", "bob", "carol", "mallory"))
THREE = (ALICE, BOB, CAROL)


def make_vault(
    signers: Sequence[Keys] = THREE, threshold: int = 2, *, network: Network | None = None, account: int = 0
) -> Vault:
    network = network or signers[0].network
    return Vault(network, threshold, tuple(signer.vault_key(network, account) for signer in signers))
