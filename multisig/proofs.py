"""What can be proven about the coins of a PSBT, without trusting any of its claims.

An amount is proven by the whole previous transaction, whose hash is in the outpoint (BIP-174;
CVE-2020-14199). Ownership is proven by deriving the script again from the policy this machine holds
(BIP-388): the origins in the PSBT only say where to look.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from multisig.keys import HARDENED, Fingerprint, KeyOrigin, OriginKey
from multisig.psbt import PsbtInput
from multisig.script import p2wsh
from multisig.shown import ByMember
from multisig.transaction import TxOut
from multisig.vault import CHANGE, MAX_INDEX, RECEIVE, Policy, Vault

Derivations = Mapping[bytes, KeyOrigin]
"""Public keys and where they are said to come from, as a PSBT states them."""


class Unproven(Enum):
    """Why the output that an input spends is not proven."""

    MISSING = "previous-transaction-missing"
    MISMATCH = "previous-transaction-mismatch"


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a script in a policy: chain (0 receive, 1 change) and address index."""

    chain: int
    index: int

    @property
    def is_absurd(self) -> bool:
        """Whether wallets would not look for coins there."""
        return self.chain not in {RECEIVE, CHANGE} or self.index > MAX_INDEX


@dataclass(frozen=True, slots=True, repr=False)
class OurScript(ByMember):
    """A script derived from the policy, and what a PSBT must contain for it.

    `witness_script` is None for a single-signature profile, whose spend reveals a key only.
    """

    place: Place
    script_pubkey: bytes
    witness_script: bytes | None
    derivations: Derivations

    @property
    def signers(self) -> dict[bytes, Fingerprint]:
        """Each public key and its device, in script order: keys are sorted (BIP-67)."""
        return {key: self.derivations[key].fingerprint for key in sorted(self.derivations)}


def policy_keys(policy: Policy) -> tuple[OriginKey, ...]:
    return policy.cosigners if isinstance(policy, Vault) else (policy.key,)


def policy_threshold(policy: Policy) -> int:
    return policy.threshold if isinstance(policy, Vault) else 1


def derive(policy: Policy, place: Place) -> OurScript:
    """Raises InvalidPath for a place outside the bounds of a vault."""
    chain, index = place.chain, place.index
    derivations = policy.derivations(chain, index)
    if isinstance(policy, Vault):
        witness_script = policy.witness_script(chain, index)
        return OurScript(place, p2wsh(witness_script), witness_script, derivations)
    return OurScript(place, policy.script_pubkey(chain, index), None, derivations)


def proven_output(item: PsbtInput) -> TxOut | Unproven:
    """The output an input spends, as its own previous transaction states it; or why that is unknown."""
    previous = item.non_witness_utxo
    if previous is None:
        return Unproven.MISSING
    if previous.txid != item.outpoint.txid or item.outpoint.vout >= len(previous.outputs):
        return Unproven.MISMATCH
    return previous.outputs[item.outpoint.vout]


class Prover:
    """Recognises the scripts of one policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        # A script of another form is not ours, wherever its origins point: nothing is derived for it.
        self._form = (b"\x00\x20", 34) if isinstance(policy, Vault) else (b"\x00\x14", 22)
        self._accounts = {bytes(key.fingerprint): key.origin.path.indexes for key in policy_keys(policy)}

    def is_named_in(self, derivations: Derivations) -> bool:
        """Whether any origin names one of the policy's devices."""
        return any(bytes(origin.fingerprint) in self._accounts for origin in derivations.values())

    def claimed_places(self, derivations: Derivations) -> set[Place]:
        """The places the origins point to, in the accounts of this policy."""
        # Nearly always one, which all keys of a script point to.
        ends = {self._end(origin) for origin in derivations.values()}
        return {Place(*end) for end in ends if end is not None and max(end) < HARDENED}

    def _end(self, origin: KeyOrigin) -> tuple[int, int] | None:
        """The two levels below an account of this policy: chain and address index."""
        account, path = self._accounts.get(origin.fingerprint.value), origin.path.indexes
        if account is None or path[:-2] != account:
            return None
        chain, index = path[-2:]
        return chain, index

    def prove(self, script_pubkey: bytes, derivations: Derivations) -> OurScript | None:
        """What the policy derives where the origins point, if that is this very script; else None.

        Origins that point to different places, a chain that is neither receive nor change, and an absurd
        index prove nothing.
        """
        begin, size = self._form
        if len(script_pubkey) != size or not script_pubkey.startswith(begin):
            return None
        places = self.claimed_places(derivations)
        if len(places) != 1 or (place := places.pop()).is_absurd:
            return None
        ours = derive(self.policy, place)
        return ours if ours.script_pubkey == script_pubkey else None
