"""What can be proven about the coins of a PSBT, without believing a word of it.

An amount is proven by the whole previous transaction, whose hash is in the outpoint (BIP-174; CVE-2020-14199).
Ownership is proven by deriving the script again from the policy this machine holds (BIP-388): the origins in
the PSBT only say where to look.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from multisig.keys import HARDENED, Fingerprint, KeyOrigin, OriginKey
from multisig.psbt import PsbtInput
from multisig.transaction import TxOut
from multisig.vault import CHANGE, MAX_INDEX, RECEIVE, Policy, Vault


class Unproven(Enum):
    """Why the output that an input spends is not known for certain."""

    MISSING = "previous-transaction-missing"
    MISMATCH = "previous-transaction-mismatch"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a script stands in a policy: chain (0 receive, 1 change) and address index."""

    chain: int
    index: int


def policy_keys(policy: Policy) -> tuple[OriginKey, ...]:
    return policy.cosigners if isinstance(policy, Vault) else (policy.key,)


def policy_threshold(policy: Policy) -> int:
    return policy.threshold if isinstance(policy, Vault) else 1


def policy_witness_script(policy: Policy, place: Place) -> bytes | None:
    """The script that a spend reveals; None for a single-signature profile, which reveals a key only."""
    return policy.witness_script(place.chain, place.index) if isinstance(policy, Vault) else None


def proven_output(item: PsbtInput) -> TxOut | Unproven:
    """The output an input spends, as its own previous transaction states it; or why that is unknown."""
    previous = item.non_witness_utxo
    if previous is None:
        return Unproven.MISSING
    if previous.txid != item.outpoint.txid or item.outpoint.vout >= len(previous.outputs):
        return Unproven.MISMATCH
    return previous.outputs[item.outpoint.vout]


def claims_policy(policy: Policy, derivations: Mapping[bytes, KeyOrigin]) -> bool:
    """Whether any origin names one of the policy's devices."""
    ours = {key.origin.fingerprint for key in policy_keys(policy)}
    return any(origin.fingerprint in ours for origin in derivations.values())


def claimed_places(policy: Policy, derivations: Mapping[bytes, KeyOrigin]) -> set[Place]:
    """The places the origins point to, in the accounts of this policy."""
    accounts = {key.origin.fingerprint: tuple(key.origin.path) for key in policy_keys(policy)}
    return set(_places(accounts, derivations.values()))


def _places(accounts: Mapping[Fingerprint, tuple[int, ...]], origins: Iterable[KeyOrigin]) -> Iterable[Place]:
    for origin in origins:
        account = accounts.get(origin.fingerprint)
        path = tuple(origin.path)
        if account is None or len(path) != len(account) + 2 or path[: len(account)] != account:
            continue
        chain, index = path[-2:]
        if chain < HARDENED and index < HARDENED:
            yield Place(chain, index)


def is_absurd(place: Place) -> bool:
    """Whether no wallet would ever look for coins there."""
    return place.chain not in {RECEIVE, CHANGE} or place.index > MAX_INDEX


def prove_ours(policy: Policy, script_pubkey: bytes, derivations: Mapping[bytes, KeyOrigin]) -> Place | None:
    """The place whose script, derived from the policy, is this one; None where there is no proof.

    Origins that point to different places, a chain that is neither receive nor change, and an absurd index
    prove nothing.
    """
    places = claimed_places(policy, derivations)
    if len(places) != 1:
        return None
    (place,) = places
    if is_absurd(place):
        return None
    return place if policy.script_pubkey(place.chain, place.index) == script_pubkey else None
