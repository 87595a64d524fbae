"""Deterministic people, vaults, coins and signatures for tests. The private side stands here and nowhere in multisig."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from coincurve import PrivateKey

from multisig import (
    HARDENED,
    RECEIVE,
    SIGHASH_ALL,
    ChangeTo,
    CoinToSpend,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    KeyOrigin,
    Network,
    OriginKey,
    OutPoint,
    Policy,
    Profile,
    Psbt,
    PsbtInput,
    PsbtOutput,
    SighashCache,
    Transaction,
    TxIn,
    TxOut,
    Vault,
    build_psbt,
    hash160,
    multisig_account_path,
    p2pkh,
    p2wpkh,
    profile_account_path,
    sats,
)

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
        return PrivateKey(self.key).public_key.format()

    def child(self, number: int) -> "PrivateNode":
        data = b"\x00" + self.key if number >= HARDENED else self.public_key
        digest = hmac.digest(self.chain_code, data + number.to_bytes(4), "sha512")
        key = (int.from_bytes(digest[:32]) + int.from_bytes(self.key)) % ORDER
        return PrivateNode(
            key.to_bytes(32), digest[32:], self.depth + 1, hash160(self.public_key)[:4], number
        )


@dataclass(frozen=True)
class Signer:
    """A person with a seed. The same name is always the same seed."""

    name: str

    @property
    def master(self) -> PrivateNode:
        return _master(self.name)

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(hash160(self.master.public_key)[:4])

    def private_node(self, path: Iterable[int]) -> PrivateNode:
        return _node(self.name, tuple(path))

    def origin_key(self, path: DerivationPath, network: Network = Network.REGTEST) -> OriginKey:
        """The extended public key at a path, with its origin."""
        node = self.private_node(path)
        xpub = ExtendedPublicKey(
            network.kind, node.depth, Fingerprint(node.parent), node.number, node.chain_code, node.public_key
        )
        return OriginKey(KeyOrigin(self.fingerprint, path), xpub)

    def vault_key(self, network: Network = Network.REGTEST, account: int = 0) -> OriginKey:
        return self.origin_key(multisig_account_path(network, account), network)

    def profile(self, network: Network = Network.REGTEST) -> Profile:
        return Profile(network, self.origin_key(profile_account_path(network), network))

    def sign(self, psbt: Psbt, *, sighash: int = SIGHASH_ALL, inputs: Sequence[int] | None = None) -> Psbt:
        """Sign as a device does that believes the PSBT: every input (or those given) whose origins name us."""
        chosen = range(len(psbt.inputs)) if inputs is None else inputs
        return psbt.with_signatures(
            {index: self.signatures(psbt, index, sighash=sighash) for index in chosen}
        )

    def signatures(self, psbt: Psbt, index: int, *, sighash: int = SIGHASH_ALL) -> dict[bytes, bytes]:
        """This person's partial signatures on one input, with the amount the PSBT states."""
        item = psbt.inputs[index]
        assert item.witness_utxo is not None
        signatures = {}
        for key, origin in item.derivations.items():
            if origin.fingerprint != self.fingerprint:
                continue
            code = item.witness_script if item.witness_script is not None else p2pkh(hash160(key))
            digest = SighashCache(psbt.tx).segwit_v0(index, code, item.witness_utxo.amount, sighash)
            private = PrivateKey(self.private_node(origin.path).key)
            assert private.public_key.format() == key, "the origin does not lead to the key"
            signatures[key] = private.sign(digest, hasher=None) + bytes((sighash,))
        return signatures


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
    signers: Sequence[Signer] = THREE,
    threshold: int = 2,
    *,
    network: Network = Network.REGTEST,
    account: int = 0,
) -> Vault:
    return Vault(network, threshold, tuple(signer.vault_key(network, account) for signer in signers))


def foreign_script(label: str = "shop") -> bytes:
    """A P2WPKH script of somebody outside."""
    return p2wpkh(PrivateKey(hashlib.sha256(label.encode()).digest()).public_key.format())


def fund(
    policy: Policy, amount: int, *, index: int = 0, chain: int = RECEIVE, salt: int = 0, outputs: int = 2
) -> CoinToSpend:
    """A coin of the policy, in the second of the `outputs` of a transaction that looks like one from outside."""
    origin = hashlib.sha256(f"coin {chain} {index} {salt}".encode()).hexdigest()
    previous = Transaction(
        version=2,
        inputs=(TxIn(OutPoint(origin, 1), 0xFFFFFFFD, b"", (b"\x30" * 71, b"\x02" * 33)),),
        outputs=(
            TxOut(sats(12_345), foreign_script("change of the payer")),
            TxOut(sats(amount), policy.script_pubkey(chain, index)),
            *(pay(600 + number) for number in range(outputs - 2)),
        ),
        locktime=0,
    )
    return CoinToSpend(OutPoint(previous.txid, 1), sats(amount), chain, index, previous)


def pay(amount: int, label: str = "shop") -> TxOut:
    return TxOut(sats(amount), foreign_script(label))


def make_spend(policy: Policy, *, n_inputs: int = 2, fee: int = 1_000, locktime: int = 0) -> Psbt:
    """Coins of 100,000 sat each; 50,000 sat are paid outside (output 0), the rest comes back (output 1)."""
    coins = [fund(policy, 100_000, index=index) for index in range(n_inputs)]
    change = n_inputs * 100_000 - 50_000 - fee
    return build_psbt(policy, coins, [pay(50_000), ChangeTo(sats(change), 1, 7)], locktime)


def with_input(psbt: Psbt, index: int, **fields: object) -> Psbt:
    """The PSBT with fields of one input replaced, as an attacker would."""
    inputs = list(psbt.inputs)
    inputs[index] = replace(inputs[index], **fields)
    return replace(psbt, inputs=tuple(inputs))


def with_output(psbt: Psbt, index: int, **fields: object) -> Psbt:
    """The PSBT with fields of one output replaced; amount and script change in the transaction too."""
    outputs = list(psbt.outputs)
    outputs[index] = replace(outputs[index], **fields)
    return with_outputs(psbt, *outputs)


def with_inputs(psbt: Psbt, *inputs: PsbtInput) -> Psbt:
    """The PSBT with exactly these inputs, in the transaction too."""
    tx = replace(psbt.tx, inputs=tuple(TxIn(item.outpoint, item.sequence) for item in inputs))
    return replace(psbt, tx=tx, inputs=inputs)


def with_outputs(psbt: Psbt, *outputs: PsbtOutput) -> Psbt:
    """The PSBT with exactly these outputs, in the transaction too."""
    tx = replace(psbt.tx, outputs=tuple(TxOut(item.amount, item.script_pubkey) for item in outputs))
    return replace(psbt, tx=tx, outputs=outputs)
