"""Whose coins a proposal spends, and with which of our keys: the pinned vault's, or the member's own profile's."""

from dataclasses import dataclass

from custody.schemas.proposals import TxType
from multisig import MultisigError, OriginKey, Policy, Profile, Psbt
from multisig.proofs import Prover
from signerd.core.values import ReviewContext, Snapshot

PROFILE = "profile"


@dataclass(frozen=True)
class Signing:
    """``key``: that of ours which signs."""

    policy: Policy
    key: OriginKey


def signing_of(snapshot: Snapshot, around: ReviewContext) -> Signing | None:
    """None where the vault is not pinned, or what is said to be from a profile is from none of ours."""
    if snapshot.kind is TxType.FORWARD or snapshot.is_of_profile:
        return _profile_of(snapshot, around)
    pin = around.pin
    return None if pin is None else Signing(pin.vault, pin.own_key)


def _profile_of(snapshot: Snapshot, around: ReviewContext) -> Signing | None:
    """The registered profile that the coins are said to be of; where they say nothing, there is none.

    Which of ours it is, is all that is taken from what the PSBT says: whether the coins are its, is proven later.
    """
    try:
        said = [item.derivations for item in Psbt.parse(snapshot.psbt).inputs]
    except MultisigError:
        return None
    for own in around.own_keys:
        if own.purpose == PROFILE and own.key.xpub.kind is around.network.kind:
            profile = Profile(around.network, own.key)
            prover = Prover(profile)
            if any(prover.claimed_places(derivations) for derivations in said):
                return Signing(profile, own.key)
    return None
