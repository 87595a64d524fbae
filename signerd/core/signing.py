"""Whose coins a proposal spends, and with which of our keys: the pinned vault's, or the member's own
profile's.

The platform knows nothing of an imported PSBT, so its coins are looked up here among the pins and the
profiles. It then goes through the same states and checks as a proposal, with two more differences: only the
person is told of its end, and its signature is handed over instead of submitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import MultisigError, Network, OriginKey, Policy, Profile, Psbt, ReceivedPsbt
from multisig.proofs import Prover, Unproven, policy_threshold, proven_output
from signerd.core.values import Imported, OwnKey, Pin, ReviewContext, Snapshot

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

    Which of ours it is, is all that is taken from what the PSBT says: whether the coins are its, is proven
    later.
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


# How long the person is asked. The platform's proposals live for days because others sign as well; an app
# that imports a PSBT waits for the answer, and chose the fee for now.
LIVES_SECONDS = 24 * 3600
# Values that no vault and no workspace has: the platform's ids have at least one character, and count from
# one.
NO_VAULT, NO_WORKSPACE = "", 0


def imported_snapshot(
    psbt_id: str,
    raw: bytes,
    brought: Imported,
    pins: Iterable[Pin],
    own_keys: Iterable[OwnKey],
    network: Network,
) -> Snapshot:
    """What is known of an imported PSBT: its bytes, and whose coins it seems to spend. Nothing is proven."""
    try:
        psbt = ReceivedPsbt.parse(raw).psbt
    except MultisigError:
        # Kept as it came: the review refuses it with the parser's reason.
        return _snapshot(psbt_id, raw, brought, None, network)
    # Written anew: nothing opaque that was in it is kept here, or given to a device.
    return _snapshot(psbt_id, psbt.to_bytes(), brought, _purse(psbt, pins, own_keys, network), network)


def _snapshot(psbt_id: str, psbt: bytes, brought: Imported, pin: Pin | None, network: Network) -> Snapshot:
    return Snapshot(
        psbt_id=psbt_id,
        workspace_id=NO_WORKSPACE if pin is None else pin.workspace_id,
        workspace_network=network.api_name,
        vault_id=NO_VAULT if pin is None else pin.vault_id,
        kind=TxType.SEND,
        status=ProposalStatus.PENDING,
        psbt=psbt,
        recipients=(),
        amounts=(),
        op_return=None,
        fee=0,
        txid_expected="",
        description="",
        created_by=brought.by,
        required=1 if pin is None else policy_threshold(pin.vault),
        collected=0,
        brought=brought,
    )


def _purse(psbt: Psbt, pins: Iterable[Pin], own_keys: Iterable[OwnKey], network: Network) -> Pin | None:
    """The pinned vault that most of the coins claim to belong to; None where that is the profile, or none is
    known.

    The claim only selects the vault to judge by; the inspection proves that every coin belongs to it. One
    account's key may be in many vaults, and then the claim fits all of them: the first coin's script tells
    them apart.
    """
    best: tuple[tuple[int, bool], Pin | None] = (_claim(psbt, _profiles(own_keys, network)), None)
    for pin in pins:
        claim = _claim(psbt, (pin.vault,))
        if claim > best[0]:
            best = (claim, pin)
    return best[1]


def _profiles(own_keys: Iterable[OwnKey], network: Network) -> tuple[Policy, ...]:
    keys: Iterable[OriginKey] = (own.key for own in own_keys if own.purpose == PROFILE)
    return tuple(Profile(network, key) for key in keys if key.xpub.kind is network.kind)


def _claim(psbt: Psbt, policies: Iterable[Policy]) -> tuple[int, bool]:
    """How many of the inputs are said to be of one of these, and whether the first one is."""
    provers = tuple(Prover(policy) for policy in policies)
    said = sum(any(prover.claimed_places(item.derivations) for prover in provers) for item in psbt.inputs)
    return said, any(_proves_first(prover, psbt) for prover in provers)


def _proves_first(prover: Prover, psbt: Psbt) -> bool:
    """One coin is enough to choose by, and costs one derivation for each vault."""
    first = psbt.inputs[0]
    spent = proven_output(first)
    return (
        not isinstance(spent, Unproven) and prover.prove(spent.script_pubkey, first.derivations) is not None
    )
