"""A PSBT that an app, or the person at the terminal, brings: the platform knows nothing of it.

It lives the life of a proposal, in the same table, and is judged by the same checks. Three things differ: whose coins it
spends is found out here, nobody but the person is told of its end, and what was signed is handed over and not submitted.
"""

from collections.abc import Iterable
from dataclasses import replace

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import MultisigError, Network, OriginKey, Policy, Profile, Psbt
from multisig.proofs import Prover, Unproven, policy_threshold, proven_output
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.signing import PROFILE
from signerd.core.states import AT_THE_DEVICE, UNDECIDED, Move, State, advance
from signerd.core.step import Step
from signerd.core.values import Imported, OwnKey, Pin, Record, ReviewContext, Snapshot
from signerd.errors import IllegalEvent

# The person is asked for so long. Proposals of the platform live for days, for others sign as well; whoever brings a
# PSBT waits for the answer, and its fee was chosen for now.
LIVES_SECONDS = 24 * 3600
# What no vault is called, and no workspace: ids of the platform have a character, and count from one.
NO_VAULT, NO_WORKSPACE = "", 0


def imported_snapshot(
    psbt_id: str,
    raw: bytes,
    brought: Imported,
    pins: Iterable[Pin],
    own_keys: Iterable[OwnKey],
    network: Network,
) -> Snapshot:
    """What is known of a PSBT that somebody brings: its bytes, and whose coins they seem to be. Nothing is proven yet."""
    try:
        psbt = Psbt.parse(raw)
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
    """The pinned vault that most of the coins are said to be of; None where that is the profile, or nobody.

    By which it is judged is all that is taken from what the PSBT says. That every coin is its, the inspection proves.
    One account's key is in many vaults, of which each is then said to be it: the first coin's script tells them apart.
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


def handed_over(record: Record) -> Step | None:
    """What was brought is not submitted: its signature is ready for whoever brought it. None for a proposal."""
    if record.snapshot.brought is None:
        return None
    ready = replace(record, state=advance(record.state, Move.HAND_OVER))
    facts = {"app": record.snapshot.brought.app_id or "", "to": record.snapshot.brought.by}
    return Step(ready, notes=(Note(State.HANDED_OVER.value, record.psbt_id, facts),))


def taken_back(record: Record, _event: events.TakenBack, _around: ReviewContext) -> Step:
    """Raises IllegalEvent where a device is being asked, or it is decided: a signature cannot be asked back."""
    if record.snapshot.brought is None or record.state not in UNDECIDED:
        raise IllegalEvent(f"what is {record.state} cannot be taken back")
    by = record.snapshot.brought.by
    reason = f"{by[0].upper()}{by[1:]} took it back."
    gone = replace(record, state=advance(record.state, Move.WITHDRAW), approval=None, reason=reason)
    return Step(gone, notes=(Note("taken-back", record.psbt_id),))


def lapsed(record: Record, _event: events.Lapsed, _around: ReviewContext) -> Step:
    """Nothing where it is decided, or a device is being asked: what that gives counts, and is looked at after it."""
    if record.snapshot.brought is None or record.state in AT_THE_DEVICE or record.state not in UNDECIDED:
        return Step(record)
    approved = record.state is State.WAITING_DEVICE
    reason = (
        "You approved it, and no device signed it in time."
        if approved
        else "Nobody decided about it in time."
    )
    gone = replace(record, state=advance(record.state, Move.EXPIRE), approval=None, reason=reason)
    return Step(gone, notes=(Note("lapsed", record.psbt_id),))
