"""Signatures that were made after the backup from which the journal was restored.

The platform's proposals have them. A signature that verifies by our key counts as made here, for every check
and limit. The platform can hide signatures, and a restored journal cannot know of those
(docs/sign/backup.md).
"""

import hashlib
from dataclasses import dataclass, replace

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import Inspection, MultisigError, Psbt, inspect, progress_of
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.events import Level, Notify, Step, request_key, then_step
from signerd.core.following import ANEW, ended, withdrawn
from signerd.core.places import NEW_POLICY, policy_code, used_by
from signerd.core.signing import Signing, signing_of
from signerd.core.states import AT_THE_DEVICE, TABLE, Move
from signerd.core.values import Record, ReviewContext, Signature, Snapshot

FORGOTTEN = (
    "You signed it before the backup. Whether the platform took the signature since, or you declined it, is "
    f"not known: signerd does not submit it again. {ANEW}"
)
REASON = "You signed it before this machine's memory was restored: the platform shows your signature."


@dataclass(frozen=True)
class OwnSignature:
    """A verified signature of ours in the platform's PSBT. ``missing``: the inputs without one."""

    signing: Signing
    inspection: Inspection
    missing: tuple[int, ...]


def own_signature(snapshot: Snapshot, context: ReviewContext) -> OwnSignature | None:
    """None where no input has one, or where the PSBT is not proven to spend the pinned vault."""
    signing = signing_of(snapshot, context)
    if signing is None:
        return None
    try:
        psbt = Psbt.parse(snapshot.psbt)
        # Another key's bad signature must not hide ours.
        progress = progress_of(psbt, signing.policy, signing.key.origin.fingerprint)
        if not progress.signed:
            return None
        found = inspect(psbt, signing.policy, network=context.network)
        return OwnSignature(signing, found, tuple(progress.missing))
    except MultisigError:
        return None


def forgotten(record: Record) -> Step:
    """A signature that the platform did not have when the backup was made is withdrawn: the person may have
    declined since, and the platform would still accept the signature.
    """
    return withdrawn(record, FORGOTTEN)


def recalled(record: Record, _event: events.Recalled, context: ReviewContext) -> Step:
    """Record a signature of ours that the journal does not have.

    Signatures of only some inputs count as well: the platform may hide the others. Such a proposal is
    quarantined: the missing inputs may have been signed, so they are not signed again.
    """
    found = own_signature(record.snapshot, context)
    if found is None or record.signature is not None or record.state in AT_THE_DEVICE:
        return Step(record)
    psbt_id, psbt = record.psbt_id, record.snapshot.psbt
    signature = Signature(psbt, request_key("submit", psbt_id, psbt))
    lacks = found.missing and record.snapshot.status is ProposalStatus.PENDING
    state = TABLE.get((record.state, Move.RECALL_PART if lacks else Move.RECALL), record.state)
    reason = f"{REASON} {_missing_text(found.missing)}" if lacks else REASON
    known = replace(record, state=state, signature=signature, approval=None, reason=reason)
    code = policy_code(found.signing.policy)
    places = used_by(found.inspection, context.places.get(code, NEW_POLICY))
    notes = (
        Note(
            "recalled", psbt_id, {"from": record.state.value, "payments": _payments(record.snapshot, found)}
        ),
        Note(
            "signed",
            psbt_id,
            {
                "idempotency_key": signature.idempotency_key,
                "places": places,
                "policy": code,
                "psbt_sha256": hashlib.sha256(psbt).hexdigest(),
            },
        ),
    )
    return then_step(Step(known, (Notify(psbt_id, Level.ATTENTION, reason),), notes), ended)


def _missing_text(inputs: tuple[int, ...]) -> str:
    told = ", ".join(map(str, inputs))
    return f"It shows none for inputs {told}, which are not signed here any more: have it proposed anew."


def _payments(snapshot: Snapshot, found: OwnSignature) -> list[list[object]]:
    """As in the note of an approval; a forward's payment to the vault does not count."""
    if snapshot.kind is TxType.FORWARD:
        return []
    return [[paid.script_pubkey.hex(), int(paid.amount)] for paid in found.inspection.payments]
