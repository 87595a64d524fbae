"""A policy of `firmware_bridge.port` in the words of HWI: keys, paths, and the multisig descriptor of one address."""

from collections.abc import Mapping, Sequence
from typing import Any

from hwilib.descriptor import MultisigDescriptor, PubkeyProvider

Policy = Mapping[str, Any]


def is_vault(policy: Policy) -> bool:
    return bool(policy["kind"] == "vault")


def keys(policy: Policy) -> list[PubkeyProvider]:
    """Each key of the policy with its origin, in the order of its descriptor."""
    return [PubkeyProvider.parse(key) for key in policy["keys"]]


def multisig(policy: Policy, chain: int, index: int) -> MultisigDescriptor:
    """The vault's script at one place. HWI reorders its keys; a sorted quorum is the same in any order."""
    providers = [PubkeyProvider.parse(f"{key}/{chain}/{index}") for key in policy["keys"]]
    return MultisigDescriptor(providers, policy["threshold"], is_sorted=True)


def key_path(policy: Policy, chain: int, index: int) -> str:
    """From the master key to the key of a profile's address."""
    (key,) = keys(policy)
    return f"{key.origin.get_derivation_path()}/{chain}/{index}"


def same_quorum(policy: Policy, threshold: int, signers: Sequence[tuple[bytes, Sequence[int], str]]) -> bool:
    """Whether a device means the policy: its threshold, and (fingerprint, path, extended key) of each cosigner in any order."""
    ours = {(key.origin.fingerprint, tuple(key.origin.path), key.pubkey) for key in keys(policy)}
    theirs = [(bytes(fingerprint), tuple(path), xpub) for fingerprint, path, xpub in signers]
    return threshold == policy["threshold"] and len(theirs) == len(ours) and set(theirs) == ours
