"""Following the platform's state of a proposal.

Also proposals of a pinned vault that never awaited this machine: what others signed is a warning (S27), and
the person is not asked about them. The platform can hide them; no check passes because of them.

And signatures that were made after the backup from which the journal was restored: the platform's proposals
have them. A signature that verifies by our key counts as made here, for every check and limit. The platform
can hide signatures, and a restored journal cannot know of those (docs/sign/backup.md).
"""

import hashlib
from dataclasses import dataclass, replace

from custody.common.text import foreign
from custody.schemas.proposals import ProposalStatus, TxType
from custody.schemas.vaults import MAX_SIGNERS
from multisig import Inspection, MultisigError, inspect, progress_of
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.events import Level, Notify, Step, ask_person, request_key, then_step
from signerd.core.places import NEW_POLICY, policy_code, used_by
from signerd.core.review import review
from signerd.core.signing import SigningPolicy, signing_of
from signerd.core.states import TABLE, TO_SUBMIT, UNDECIDED, ProposalMove, State, advance
from signerd.core.values import Record, ReviewContext, SignedPsbt, Snapshot, Unfollowed, identity_of, psbt_of

ENDS = {
    ProposalStatus.BROADCASTING: ProposalMove.WENT_OUT,
    ProposalStatus.CONFIRMED: ProposalMove.CONFIRM,
    ProposalStatus.PROVEN: ProposalMove.CONFIRM,
    ProposalStatus.EXPIRED: ProposalMove.EXPIRE,
    ProposalStatus.REPLACED: ProposalMove.SUPERSEDE,
    ProposalStatus.REJECTED: ProposalMove.WITHDRAW,
    ProposalStatus.CANCELLED: ProposalMove.WITHDRAW,
    ProposalStatus.INVALIDATED: ProposalMove.WITHDRAW,
    ProposalStatus.FAILED: ProposalMove.WITHDRAW,
}
# Deeper reorganisations are not expected.
SETTLED_CONFIRMATIONS = 6
# The final states of an imported PSBT.
IMPORTED_ENDS = frozenset({State.HANDED_OVER, State.DECLINED, State.EXPIRED, State.WITHDRAWN})
# Others met the threshold: our signature is no longer needed.
MET_BY_OTHERS = frozenset({ProposalStatus.SIGNED, ProposalStatus.STALLED})
# The platform says that it ended. A signature that was submitted may still confirm.
OVER = frozenset({State.EXPIRED, State.SUPERSEDED, State.WITHDRAWN})
# The final states.
ENDED = OVER | {State.HANDED_OVER, State.CONFIRMED, State.DECLINED}


def receive(snapshot: Snapshot, context: ReviewContext) -> Step:
    """A proposal that is seen for the first time is reviewed at once."""
    record = Record(snapshot, State.RECEIVED, identity_of(snapshot.psbt))
    facts = {"transaction": record.identity, "vault": snapshot.vault_id}
    if snapshot.imported is not None:
        facts |= {"app": snapshot.imported.app_id or "", "imported_by": snapshot.imported.by}
    first = Note("received", snapshot.psbt_id, facts)
    return then_step(Step(record, notes=(first,)), lambda r: ended(r) or judged(r, context))


def polled(record: Record, event: events.Polled, context: ReviewContext) -> Step:
    # The platform does not have imported PSBTs: what it shows under that id is another proposal.
    if event.snapshot == record.snapshot or record.snapshot.imported is not None:
        return Step(record)
    if _moved(record, event.snapshot) or identity_of(event.snapshot.psbt) != record.identity:
        return _altered(record, event.snapshot)
    updated = replace(record, snapshot=event.snapshot)
    at_its_end = ended(updated)
    if at_its_end is not None:
        return at_its_end
    if record.state not in (State.REFUSED, State.WAITING_PERSON):
        return Step(updated)
    if review(record.snapshot, context).digest == review(updated.snapshot, context).digest:
        return Step(updated)
    return reconsidered(updated, events.Reconsidered(), context)


def _moved(record: Record, snapshot: Snapshot) -> bool:
    """Whether vault, workspace or kind changed. They decide which proposals it is compared with, where its
    signature is sent, and which of our keys signs.
    """
    known = record.snapshot
    return (snapshot.vault_id, snapshot.workspace_id, snapshot.kind) != (
        known.vault_id,
        known.workspace_id,
        known.kind,
    )


def _altered(record: Record, snapshot: Snapshot) -> Step:
    """S24: an id stands for one transaction of one vault. Another one is never signed, and raises an
    alarm.
    """
    # Only the platform's status is updated; the PSBT and the rest stay as they were.
    known = record.snapshot
    kept_snapshot = replace(
        snapshot, psbt=known.psbt, vault_id=known.vault_id, workspace_id=known.workspace_id, kind=known.kind
    )
    kept = replace(record, snapshot=kept_snapshot)
    moved = _moved(record, snapshot)
    what = (
        "this proposal in another vault or workspace, or as another kind"
        if moved
        else "another transaction under this proposal's id"
    )
    alarm = f"ALARM: the platform shows {what}."
    if record.alarm:
        return ended(kept) or Step(kept)
    facts = {
        "seen": record.identity,
        "now": identity_of(snapshot.psbt),
        "kind": snapshot.kind.value,
        "vault": snapshot.vault_id,
        "workspace": snapshot.workspace_id,
    }
    note = Note("altered", record.psbt_id, facts)
    notice = Notify(record.psbt_id, Level.ALARM, alarm)
    alarmed = replace(kept, alarm=alarm)
    if (record.state, ProposalMove.ALTERED) in TABLE:
        alarmed = alarmed.moved(ProposalMove.ALTERED, reason=alarm, approval=None)
        return Step(alarmed, (notice,), (note,))
    return then_step(Step(alarmed, (notice,), (note,)), ended)


def ended(record: Record) -> Step | None:
    """The step where the platform says that the proposal ended or advanced; None where nothing is new."""
    status = record.snapshot.status
    move = ENDS.get(status)
    if status is ProposalStatus.PROVEN and not is_proof_whole(record.snapshot):
        move = None  # Meaningless for a payment.
    if status in MET_BY_OTHERS and record.state in (*UNDECIDED, State.EXPORTED, State.KEPT):
        move = ProposalMove.WENT_OUT
    if move is None or (record.state, move) not in TABLE:
        return None
    state = advance(record.state, move)
    facts = {"from": record.state.value, "platform": status.value, "txid": record.snapshot.txid or ""}
    is_proven = is_proof_whole(record.snapshot)
    reason = (
        "The platform has the whole proof." if is_proven else f"The platform says: {status.value.lower()}."
    )
    if move is ProposalMove.WITHDRAW and (why := record.snapshot.why_ended):
        reason = f"{reason} Why, by its word: {foreign(why)}"
    return Step(
        replace(record, state=state, reason=reason, let_go=False),
        notes=(Note(state.value, record.psbt_id, facts),),
    )


def replaced(record: Record, event: events.Replaced, _around: ReviewContext) -> Step:
    """A signature that the platform does not have is withdrawn: if the replacement ended, it must not be
    submitted without asking.
    """
    if record.state not in TO_SUBMIT:
        return Step(record)
    reason = (
        f"{foreign(event.by)} was proposed in its place before the platform said that it took the signature. "
        f"signerd does not submit it again. {ANEW}"
    )
    return withdrawn(record, reason, by=event.by)


# A withdrawn signature is never submitted (docs/sign/approving.md).
ANEW = (
    "To pay this all the same, ask its proposer to cancel it and propose it anew: signerd shows you "
    "both before you approve the new one."
)
LEFT = (
    "You are not in its workspace: signerd does not submit your signature while that is so, and for thirty "
    "days at most. Decline it if it must not go."
)
KEPT_TOO_LONG = (
    "The platform has not taken your signature for thirty days: signerd does not submit it again. It counts "
    f"as signed here. {ANEW}"
)
LET_GO = "signerd does not ask the platform about it any more. It counts as signed here, for good."


def lapsed(record: Record) -> Step:
    """The deadline of a proposal passed: its signature is no longer submitted, or it is no longer followed.
    For the checks it stays signed.
    """
    if record.state in TO_SUBMIT:
        return withdrawn(record, KEPT_TOO_LONG)
    if record.state not in OVER or is_settled(record):
        return Step(record)
    gone = replace(record, let_go=True, reason=f"{record.reason} {LET_GO}".strip())
    notice = Notify(record.psbt_id, Level.ATTENTION, LET_GO)
    return Step(gone, (notice,), (Note("let-go", record.psbt_id, {"state": record.state.value}),))


def withdrawn(record: Record, reason: str, **facts: str) -> Step:
    """Withdraw a signature that the platform does not have, and notify the person."""
    gone = record.moved(ProposalMove.WITHDRAW, reason=reason)
    notice = Notify(record.psbt_id, Level.ATTENTION, reason)
    note = Note(gone.state.value, record.psbt_id, {"from": record.state.value, **facts})
    return Step(gone, (notice,), (note,))


def is_proof_whole(snapshot: Snapshot) -> bool:
    return (snapshot.kind, snapshot.status) == (TxType.PROOF, ProposalStatus.PROVEN)


def judged(record: Record, context: ReviewContext) -> Step:
    result = review(record.snapshot, context)
    note = Note(
        "judged", record.psbt_id, {"digest": result.digest, "refusals": [v.name for v in result.refusals]}
    )
    if result.allowed:
        waiting = record.moved(ProposalMove.ALLOW, reason="")
        return Step(waiting, (ask_person(record.snapshot, context),), (note,))
    reason = " ".join(verdict.sentence for verdict in result.refusals)
    refused = record.moved(ProposalMove.REFUSE, reason=reason)
    imported, sentence = record.snapshot.imported, f"Refused: {reason}"
    if imported is not None and imported.app_id is not None:
        # An app does not see the person's rules or other proposals.
        sentence = "Refused by a check or by your rules: look at it for the reason."
    return Step(refused, (Notify(record.psbt_id, Level.ATTENTION, sentence),), (note,))


def reconsidered(record: Record, _event: events.Reconsidered, context: ReviewContext) -> Step:
    if (record.state, ProposalMove.RECONSIDER) not in TABLE:
        return Step(record)
    again = judged(record.moved(ProposalMove.RECONSIDER, approval=None), context)
    # Same result: the person is not asked or notified again.
    return Step(record) if again.record == record else again


def is_settled(record: Record) -> bool:
    """Whether it is final here, whatever the platform may still say."""
    if record.snapshot.imported is not None:
        return record.state in IMPORTED_ENDS
    if record.state is State.CONFIRMED:
        return is_proof_whole(record.snapshot) or record.snapshot.confirmations >= SETTLED_CONFIRMATIONS
    # A signature that may have been sent may still confirm.
    may_be_out = record.signature is not None or record.exported is not None
    return record.state in OVER and (record.let_go or not may_be_out)


# Kinds that move no money of the vault.
NOT_OF_OTHERS = frozenset({TxType.FORWARD, TxType.PROOF})
# The threshold was met.
COMPLETED = MET_BY_OTHERS | {ProposalStatus.BROADCASTING, ProposalStatus.CONFIRMED, ProposalStatus.PROVEN}


def unfollowed_of(snapshot: Snapshot) -> Unfollowed | None:
    """What to store of a proposal that others signed. None where the platform shows no signature, where it
    moves no money of the vault, or where its PSBT is malformed.
    """
    signed = snapshot.collected > 0 or snapshot.status in COMPLETED
    if not signed or snapshot.kind in NOT_OF_OTHERS:
        return None
    try:
        tx = psbt_of(snapshot.psbt).tx
    except MultisigError:
        return None
    collected = max(0, min(snapshot.collected, MAX_SIGNERS))
    return Unfollowed(snapshot.psbt_id, snapshot.status, collected, snapshot.required, tx)


def may_yet_be_signed(snapshot: Snapshot) -> bool:
    """Whether it has to be looked at again: it is pending."""
    return snapshot.status is ProposalStatus.PENDING and snapshot.kind not in NOT_OF_OTHERS


FORGOTTEN = (
    "You signed it before the backup. Whether the platform took the signature since, or you declined it, is "
    f"not known: signerd does not submit it again. {ANEW}"
)
REASON = "You signed it before this machine's memory was restored: the platform shows your signature."


@dataclass(frozen=True)
class OwnSignature:
    """A verified signature of ours in the platform's PSBT. ``missing``: the inputs without one."""

    signing: SigningPolicy
    inspection: Inspection
    missing: tuple[int, ...]


def own_signature(snapshot: Snapshot, context: ReviewContext) -> OwnSignature | None:
    """None where no input has one, or where the PSBT is not proven to spend the pinned vault."""
    signing = signing_of(snapshot, context)
    if signing is None:
        return None
    try:
        psbt = psbt_of(snapshot.psbt)
        # Another key's bad signature must not hide ours.
        progress = progress_of(psbt, signing.policy, signing.key.origin.fingerprint)
        if not progress.signed:
            return None
        inspection = inspect(psbt, signing.policy, network=context.network)
        return OwnSignature(signing, inspection, tuple(progress.missing))
    except MultisigError:
        return None


def recalled(record: Record, _event: events.Recalled, context: ReviewContext) -> Step:
    """Record a signature of ours that the journal does not have.

    Signatures of only some inputs count as well: the platform may hide the others. Such a proposal is
    quarantined: the missing inputs may have been signed, so they are not signed again.
    """
    own = own_signature(record.snapshot, context)
    if own is None or record.signature is not None or record.state is State.SIGNING:
        return Step(record)
    psbt_id, psbt = record.psbt_id, record.snapshot.psbt
    signature, signed = signed_as(psbt_id, psbt, own.signing, own.inspection, context)
    lacks = own.missing and record.snapshot.status is ProposalStatus.PENDING
    state = TABLE.get(
        (record.state, ProposalMove.RECALL_PART if lacks else ProposalMove.RECALL), record.state
    )
    reason = REASON
    if lacks:
        inputs = ", ".join(map(str, own.missing))
        reason += (
            f" It shows none for inputs {inputs}, which are not signed here any more: have it proposed anew."
        )
    known = replace(record, state=state, signature=signature, approval=None, reason=reason)
    # As in the note of an approval; a forward's payment to the vault does not count.
    paid = () if record.snapshot.kind is TxType.FORWARD else own.inspection.payments
    payments = [[one.script_pubkey.hex(), int(one.amount)] for one in paid]
    recall = Note("recalled", psbt_id, {"from": record.state.value, "payments": payments})
    step = Step(known, (Notify(psbt_id, Level.ATTENTION, reason),), (recall, signed))
    return then_step(step, ended)


def signed_as(
    psbt_id: str,
    psbt: bytes,
    signing: SigningPolicy,
    inspection: Inspection,
    context: ReviewContext,
    **by: str,
) -> tuple[SignedPsbt, Note]:
    """A signature to store, and its note, with the addresses that are now known to be used (S29)."""
    signature, code = SignedPsbt(psbt, request_key("submit", psbt_id, psbt)), policy_code(signing.policy)
    facts = {
        "idempotency_key": signature.idempotency_key,
        "psbt_sha256": hashlib.sha256(psbt).hexdigest(),
        "places": used_by(inspection, context.places.get(code, NEW_POLICY)),
        "policy": code,
        **by,
    }
    return signature, Note("signed", psbt_id, facts)
