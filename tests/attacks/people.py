"""Whose keys the corpus is about: three cosigners, the first of them a virtual device, and Mallory, all from
fixed seeds.
"""

from dataclasses import dataclass

from device_simulators.seed import Seed
from multisig import (
    SIGHASH_ALL,
    Fingerprint,
    KeyOrigin,
    Network,
    OriginKey,
    Profile,
    Psbt,
    SighashCache,
    Vault,
    multisig_account_path,
    profile_account_path,
)
from tests.conformance.rigs import NETWORK, SEEDS

VAULT_ID = "vault-1"
WORKSPACE = 1
NAME = "Savings"


@dataclass(frozen=True)
class Person:
    """A person with a seed, the same in each run."""

    seed: Seed

    @property
    def fingerprint(self) -> Fingerprint:
        return self.seed.fingerprint

    def vault_key(self, account: int = 0, network: Network = NETWORK) -> OriginKey:
        path = multisig_account_path(network, account)
        return OriginKey(KeyOrigin(self.fingerprint, path), self.seed.xpub(path, network))

    def profile(self) -> Profile:
        path = profile_account_path(NETWORK)
        return Profile(NETWORK, OriginKey(KeyOrigin(self.fingerprint, path), self.seed.xpub(path, NETWORK)))

    def sign(self, psbt: Psbt, sighash: int = SIGHASH_ALL) -> Psbt:
        """As a device does that believes the PSBT, wherever an origin names it."""
        every = range(len(psbt.inputs))
        return psbt.with_signatures({index: self._signatures(psbt, index, sighash) for index in every})

    def _signatures(self, psbt: Psbt, index: int, sighash: int) -> dict[bytes, bytes]:
        item = psbt.inputs[index]
        assert item.witness_script is not None
        assert item.witness_utxo is not None
        digest = SighashCache(psbt.tx).segwit_v0(
            index, item.witness_script, item.witness_utxo.amount, sighash
        )
        return {
            key: self.seed.sign(origin.path, digest) + bytes((sighash,))
            for key, origin in item.derivations.items()
            if origin.fingerprint == self.fingerprint
        }


ALICE, BOB, CAROL = (Person(seed) for seed in SEEDS)
THREE = (ALICE, BOB, CAROL)
MALLORY = Person(Seed.from_entropy(b"M" * 16))


def vault_of(
    people: tuple[Person, ...] = THREE, threshold: int = 2, *, account: int = 0, network: Network = NETWORK
) -> Vault:
    return Vault(network, threshold, tuple(person.vault_key(account, network) for person in people))


VAULT = vault_of()
MALLORYS = vault_of((MALLORY, BOB, CAROL))
ONE_OF_THREE = vault_of(threshold=1)
TWO_OF_TWO = vault_of((ALICE, BOB))
OTHER_ACCOUNT = vault_of(account=1)
MAINNET = vault_of(network=Network.MAINNET)

# Whose keys a device has, by the corpus's names.
HOLDERS = {
    "alice": ALICE.seed,
    "bob": BOB.seed,
    "mallory": MALLORY.seed,
    "alice with a passphrase": ALICE.seed.with_passphrase("mallory's"),
}
