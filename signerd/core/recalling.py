"""What a journal that was restored from a backup has forgotten: signatures that were made after the backup.

The platform's proposals carry them. One that verifies by our key counts as made here, for every check and
limit. The platform can leave signatures out of what it shows: what it hides, no restored journal can know
(docs/sign/backup.md).
"""

import hashlib
from dataclasses import dataclass, replace

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import Inspection, MultisigError, Psbt, inspect, progress_of
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.events import Level, Notify, Step, go_on, request_key
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
    """A verified signature of ours in what the platform shows. ``missing``: the inputs without one."""

    signing: Signing
    inspection: Inspection
    missing: tuple[int, ...]


def own_signature(snapshot: Snapshot, around: ReviewContext) -> OwnSignature | None:
    """None where no input has one, or what is shown cannot be verified as a spend of the pinned vault."""
    signing = signing_of(snapshot, around)
    if signing is None:
        return None
    try:
        psbt = Psbt.parse(snapshot.psbt)
        # Judged by itself: another key's bad signature beside ours must not hide it.
        progress = progress_of(psbt, signing.policy, signing.key.origin.fingerprint)
        if not progress.signed:
            return None
        found = inspect(psbt, signing.policy, network=around.network)
        return OwnSignature(signing, found, tuple(progress.missing))
    except MultisigError:
        return None


def forgotten(record: Record) -> Step:
    """What was signed and not with the platform when the backup was made: it may have been kept since, and
    the person have said no, which no list of the platform's tells for certain; the platform takes a yes after
    it.
    """
    return withdrawn(record, FORGOTTEN)


def recalled(record: Record, _event: events.Recalled, around: ReviewContext) -> Step:
    """Take a signature of ours that this journal does not hold as made here; nothing where there is none.

    One of some inputs alone counts for every check and limit, too: the platform may hide the others. What
    lacks is not signed here any more, for whether it was cannot be told. Such a proposal is put aside, and
    not called delivered.
    """
    found = own_signature(record.snapshot, around)
    if found is None or record.signature is not None or record.state in AT_THE_DEVICE:
        return Step(record)
    psbt_id, psbt = record.psbt_id, record.snapshot.psbt
    signature = Signature(psbt, request_key("submit", psbt_id, psbt))
    lacks = found.missing and record.snapshot.status is ProposalStatus.PENDING
    state = TABLE.get((record.state, Move.RECALL_PART if lacks else Move.RECALL), record.state)
    reason = f"{REASON} {_lacking(found.missing)}" if lacks else REASON
    known = replace(record, state=state, signature=signature, approval=None, reason=reason)
    code = policy_code(found.signing.policy)
    places = used_by(found.inspection, around.places.get(code, NEW_POLICY))
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
    return go_on(Step(known, (Notify(psbt_id, Level.ATTENTION, reason),), notes), ended)


def _lacking(inputs: tuple[int, ...]) -> str:
    told = ", ".join(map(str, inputs))
    return f"It shows none for inputs {told}, which are not signed here any more: have it proposed anew."


def _payments(snapshot: Snapshot, found: OwnSignature) -> list[list[object]]:
    """As an approval notes them: what a forward pays to the vault is no payment of the vault's."""
    if snapshot.kind is TxType.FORWARD:
        return []
    return [[paid.script_pubkey.hex(), int(paid.amount)] for paid in found.inspection.payments]
