"""Whose coins a proposal spends, and with which of our keys: the pinned vault's, or the member's own
profile's.

The policy of an imported PSBT is looked up here, among the pins and the profiles. It then goes through the
same states and checks as a proposal, except that its end is not reported to the platform, and its signature
is handed to the importer instead of submitted.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import MultisigError, Network, OriginKey, Policy, Profile, Psbt, ReceivedPsbt
from multisig.proofs import Prover, Unproven, policy_threshold, proven_output
from signerd.core.values import Imported, OwnKey, Pin, ReviewContext, Snapshot, psbt_of

PROFILE = "profile"


@dataclass(frozen=True)
class SigningPolicy:
    """``key``: our key that signs."""

    policy: Policy
    key: OriginKey


def signing_of(snapshot: Snapshot, context: ReviewContext) -> SigningPolicy | None:
    """None where the vault is not pinned, or the profile is not one of ours."""
    if snapshot.kind is TxType.FORWARD or snapshot.is_of_profile:
        return _profile_of(snapshot, context)
    pin = context.pin
    return None if pin is None else SigningPolicy(pin.vault, pin.own_key)


def _profile_of(snapshot: Snapshot, context: ReviewContext) -> SigningPolicy | None:
    """The registered profile that the coins claim, or None. The claim only selects it; the inspection proves
    the coins.
    """
    try:
        said = [item.derivations for item in psbt_of(snapshot.psbt).inputs]
    except MultisigError:
        return None
    for own in context.own_keys:
        if own.purpose == PROFILE and own.key.xpub.kind is context.network.kind:
            profile = Profile(context.network, own.key)
            prover = Prover(profile)
            if any(prover.claimed_places(derivations) for derivations in said):
                return SigningPolicy(profile, own.key)
    return None


# How long an imported PSBT may be approved: the app waits for the answer, and its fee is for now.
LIVES_SECONDS = 24 * 3600
# Never used by the platform: its vault ids are not empty, and its workspace ids begin at one.
NO_VAULT, NO_WORKSPACE = "", 0


def imported_snapshot(
    psbt_id: str,
    raw: bytes,
    imported: Imported,
    pins: Iterable[Pin],
    own_keys: Iterable[OwnKey],
    network: Network,
) -> Snapshot:
    """The snapshot of an imported PSBT: its bytes, and the vault that it claims to spend from. Nothing is
    proven.
    """
    pin, psbt = None, raw
    # What cannot be read is kept as received: the review refuses it with the parser's reason.
    with contextlib.suppress(MultisigError):
        parsed = ReceivedPsbt.parse(raw).psbt
        # Serialised again: unknown fields are neither kept nor sent to a device.
        psbt, pin = parsed.to_bytes(), _claimed_vault(parsed, pins, own_keys, network)
    return Snapshot(
        psbt_id=psbt_id,
        workspace_id=NO_WORKSPACE if pin is None else pin.workspace_id,
        workspace_network=network.api_name,
        vault_id=NO_VAULT if pin is None else pin.vault_id,
        kind=TxType.SEND,
        status=ProposalStatus.PENDING,
        psbt=psbt,
        created_by=imported.by,
        required=1 if pin is None else policy_threshold(pin.vault),
        imported=imported,
    )


def _claimed_vault(
    psbt: Psbt, pins: Iterable[Pin], own_keys: Iterable[OwnKey], network: Network
) -> Pin | None:
    """The pinned vault that most of the coins claim; None for the profile, or for none.

    The claim only selects the vault; the inspection proves the coins. Where one account's key is in several
    vaults, the claim fits all of them, and the first coin's script decides.
    """
    keys = [own.key for own in own_keys if own.purpose == PROFILE and own.key.xpub.kind is network.kind]
    profiles = tuple(Profile(network, key) for key in keys)
    best: tuple[tuple[int, bool], Pin | None] = (_claim(psbt, profiles), None)
    for pin in pins:
        claim = _claim(psbt, (pin.vault,))
        if claim > best[0]:
            best = (claim, pin)
    return best[1]


def _claim(psbt: Psbt, policies: Iterable[Policy]) -> tuple[int, bool]:
    """How many inputs claim one of these policies, and whether the first is proven."""
    provers = tuple(Prover(policy) for policy in policies)
    said = sum(any(prover.claimed_places(item.derivations) for prover in provers) for item in psbt.inputs)
    return said, any(_proves_first(prover, psbt) for prover in provers)


def _proves_first(prover: Prover, psbt: Psbt) -> bool:
    """Whether the first coin that says where it lies is proven: one derivation for each vault."""
    first = max(psbt.inputs, key=lambda item: bool(item.derivations))
    spent = proven_output(first)
    return (
        not isinstance(spent, Unproven) and prover.prove(spent.script_pubkey, first.derivations) is not None
    )
