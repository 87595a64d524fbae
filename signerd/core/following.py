"""The platform's word about a proposal, and what this machine makes of it.

At the end: proposals of a pinned vault that never awaited this machine while it was running. What others
signed of them is a warning (S27), and the person is not asked about them. The platform can hide such a
proposal or its signatures; nothing it says about one makes a check pass.
"""

import hashlib
from dataclasses import replace

from custody.schemas.proposals import ProposalStatus, TxType
from custody.schemas.vaults import MAX_SIGNERS
from multisig import MultisigError, Psbt
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.events import Level, Notify, Step, due_effects, go_on
from signerd.core.review import review
from signerd.core.states import TABLE, TO_SUBMIT, UNDECIDED, Move, State, advance
from signerd.core.text import foreign
from signerd.core.values import Record, ReviewContext, Snapshot, Unfollowed

ENDS = {
    ProposalStatus.BROADCASTING: Move.WENT_OUT,
    ProposalStatus.CONFIRMED: Move.CONFIRM,
    ProposalStatus.PROVEN: Move.CONFIRM,
    ProposalStatus.EXPIRED: Move.EXPIRE,
    ProposalStatus.REPLACED: Move.SUPERSEDE,
    ProposalStatus.REJECTED: Move.WITHDRAW,
    ProposalStatus.CANCELLED: Move.WITHDRAW,
    ProposalStatus.INVALIDATED: Move.WITHDRAW,
    ProposalStatus.FAILED: Move.WITHDRAW,
}
# After six confirmations a reorganisation that undoes one would be news everywhere.
SETTLED_CONFIRMATIONS = 6
# The states after which nothing more is learnt of an imported PSBT.
BROUGHT_ENDS = frozenset({State.HANDED_OVER, State.DECLINED, State.EXPIRED, State.WITHDRAWN})
# The threshold was met by the others: our signature is not wanted any more.
MET_BY_OTHERS = frozenset({ProposalStatus.SIGNED, ProposalStatus.STALLED})
# The platform's words that it is over. They do not bind a signature that is out.
OVER = frozenset({State.EXPIRED, State.SUPERSEDED, State.WITHDRAWN})


def receive(snapshot: Snapshot, around: ReviewContext) -> Step:
    """A proposal seen for the first time: judged at once."""
    record = Record(snapshot, State.RECEIVED, identity_of(snapshot.psbt))
    facts = {"transaction": record.identity, "vault": snapshot.vault_id, **_importer(snapshot)}
    first = Note("received", snapshot.psbt_id, facts)
    return go_on(Step(record, notes=(first,)), lambda r: ended(r) or judged(r, around))


def _importer(snapshot: Snapshot) -> dict[str, str]:
    brought = snapshot.brought
    return {} if brought is None else {"app": brought.app_id or "", "brought_by": brought.by}


def polled(record: Record, event: events.Polled, around: ReviewContext) -> Step:
    # The platform knows nothing of an imported PSBT: what it shows under that id is something else.
    if event.snapshot == record.snapshot or record.snapshot.brought is not None:
        return Step(record)
    if _belongs_elsewhere(record, event.snapshot) or identity_of(event.snapshot.psbt) != record.identity:
        return _altered(record, event.snapshot)
    updated = replace(record, snapshot=event.snapshot)
    at_its_end = ended(updated)
    if at_its_end is not None:
        return at_its_end
    if record.state in (State.REFUSED, State.WAITING_PERSON) and _reads_differently(record, updated, around):
        return reconsidered(updated, events.Reconsidered(), around)
    return Step(updated)


def _belongs_elsewhere(record: Record, snapshot: Snapshot) -> bool:
    """A proposal never moves: its vault says which others it is compared with, and where its signature goes.

    Nor does it become a forward, or cease to be one: that says whose coins it spends, and which of our keys
    signs.
    """
    known = record.snapshot
    return (snapshot.vault_id, snapshot.workspace_id, snapshot.kind) != (
        known.vault_id,
        known.workspace_id,
        known.kind,
    )


def _reads_differently(old: Record, new: Record, around: ReviewContext) -> bool:
    return review(old.snapshot, around).digest != review(new.snapshot, around).digest


def _altered(record: Record, snapshot: Snapshot) -> Step:
    """S24: under one id there is one transaction of one vault. Another one is never signed, and never
    silently followed.
    """
    # What was signed stays as it was signed; only the platform's word about its end is taken.
    known = record.snapshot
    kept_snapshot = replace(
        snapshot,
        psbt=known.psbt,
        vault_id=known.vault_id,
        workspace_id=known.workspace_id,
        kind=known.kind,
    )
    kept = replace(record, snapshot=kept_snapshot)
    moved = _belongs_elsewhere(record, snapshot)
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
    told = Notify(record.psbt_id, Level.ALARM, alarm)
    alarmed = replace(kept, alarm=alarm)
    if (record.state, Move.ALTERED) in TABLE:
        state = advance(record.state, Move.ALTERED)
        alarmed = replace(alarmed, state=state, reason=alarm, approval=None)
        return Step(alarmed, (told,), (note,))
    return go_on(Step(alarmed, (told,), (note,)), ended)


def ended(record: Record) -> Step | None:
    """The platform says that the proposal has come to an end, or further; None where it says nothing new."""
    status = record.snapshot.status
    move = ENDS.get(status)
    if status is ProposalStatus.PROVEN and not is_proof_whole(record.snapshot):
        move = None  # Said of a payment it says nothing: that one is mined, or it is not.
    if status in MET_BY_OTHERS and record.state in (*UNDECIDED, State.EXPORTED, State.KEPT):
        move = Move.WENT_OUT
    if move is None or (record.state, move) not in TABLE:
        return None
    state = advance(record.state, move)
    facts = {"from": record.state.value, "platform": status.value, "txid": record.snapshot.txid or ""}
    is_proven = is_proof_whole(record.snapshot)
    reason = "The platform has the whole proof." if is_proven else f"The platform says {status.value}."
    return Step(
        replace(record, state=state, reason=reason, let_go=False),
        notes=(Note(state.value, record.psbt_id, facts),),
    )


def replaced(record: Record, event: events.Replaced, _around: ReviewContext) -> Step:
    """What is not with the platform yet stays here: others may have ended what replaced it, and then it would
    be submitted unasked.
    """
    if record.state not in TO_SUBMIT:
        return Step(record)
    reason = (
        f"{foreign(event.by)} was proposed in its place before the platform said that it took the signature. "
        f"signerd does not submit it again. {ANEW}"
    )
    return withdrawn(record, reason, by=event.by)


# What was withdrawn is not submitted after all (docs/sign/approving.md).
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
    """Of a proposal of the platform's: what is not with it is not submitted any more, and what ended is not
    followed any more. For the checks it stays signed.
    """
    if record.state in TO_SUBMIT:
        return withdrawn(record, KEPT_TOO_LONG)
    if record.state not in OVER or is_settled(record):
        return Step(record)
    gone = replace(record, let_go=True, reason=f"{record.reason} {LET_GO}".strip())
    told = Notify(record.psbt_id, Level.ATTENTION, LET_GO)
    return Step(gone, (told,), (Note("let-go", record.psbt_id, {"state": record.state.value}),))


def withdrawn(record: Record, reason: str, **facts: str) -> Step:
    """What was signed and is not with the platform is not submitted any more, which the person is told."""
    gone = replace(record, state=advance(record.state, Move.WITHDRAW), reason=reason)
    told = Notify(record.psbt_id, Level.ATTENTION, reason)
    note = Note(gone.state.value, record.psbt_id, {"from": record.state.value, **facts})
    return Step(gone, (told,), (note,))


def is_proof_whole(snapshot: Snapshot) -> bool:
    return (snapshot.kind, snapshot.status) == (TxType.PROOF, ProposalStatus.PROVEN)


def judged(record: Record, around: ReviewContext) -> Step:
    found = review(record.snapshot, around)
    note = Note(
        "judged", record.psbt_id, {"digest": found.digest, "refusals": [v.name for v in found.refusals]}
    )
    state = record.state
    if found.inspection is not None:
        state = advance(state, Move.INSPECT)
    if found.allowed:
        waiting = replace(record, state=advance(state, Move.ALLOW), reason="")
        return Step(waiting, due_effects(waiting, around), (note,))
    reason = " ".join(verdict.sentence for verdict in found.refusals)
    refused = replace(record, state=advance(state, Move.REFUSE), reason=reason)
    return Step(refused, (Notify(record.psbt_id, Level.ATTENTION, _refusal(record, reason)),), (note,))


def _refusal(record: Record, reason: str) -> str:
    """An app reads what is told of the PSBT that it imported; the person's rules and other signed proposals
    are not told to it.
    """
    brought = record.snapshot.brought
    told = brought is None or brought.app_id is None
    return f"Refused: {reason}" if told else "Refused by a check or by your rules: look at it for the reason."


def reconsidered(record: Record, _event: events.Reconsidered, around: ReviewContext) -> Step:
    if (record.state, Move.RECONSIDER) not in TABLE:
        return Step(record)
    again = judged(replace(record, state=advance(record.state, Move.RECONSIDER), approval=None), around)
    # Judged as before: the person is not asked or told a second time.
    return Step(record) if again.record == record else again


def is_settled(record: Record) -> bool:
    """Nothing is left to do here, and nothing that the platform could still say about it matters."""
    if record.snapshot.brought is not None:
        return record.state in BROUGHT_ENDS
    if record.state is State.CONFIRMED:
        return is_proof_whole(record.snapshot) or record.snapshot.confirmations >= SETTLED_CONFIRMATIONS
    # A signature that is out, or may be, may confirm whatever was said before.
    may_be_out = record.signature is not None or record.exported is not None
    return record.state in OVER and (record.let_go or not may_be_out)


def identity_of(psbt: bytes) -> str:
    """What a proposal is about, whatever signatures gather in it: its unsigned transaction's id."""
    try:
        return Psbt.parse(psbt).tx.txid
    except MultisigError:
        return "unreadable:" + hashlib.sha256(psbt).hexdigest()


# Moves no money of the vault, however many sign it.
NOT_OF_OTHERS = frozenset({TxType.FORWARD, TxType.PROOF})
# The threshold was met, whatever number of signatures is told.
COMPLETED = frozenset(
    {
        ProposalStatus.SIGNED,
        ProposalStatus.STALLED,
        ProposalStatus.BROADCASTING,
        ProposalStatus.CONFIRMED,
        ProposalStatus.PROVEN,
    }
)


def unfollowed_of(snapshot: Snapshot) -> Unfollowed | None:
    """None where it has no signature by the platform's word, moves no money of the vault, or has a PSBT that
    cannot be read.
    """
    signed = snapshot.collected > 0 or snapshot.status in COMPLETED
    if not signed or snapshot.kind in NOT_OF_OTHERS:
        return None
    try:
        tx = Psbt.parse(snapshot.psbt).tx
    except MultisigError:
        return None
    collected = max(0, min(snapshot.collected, MAX_SIGNERS))
    return Unfollowed(snapshot.psbt_id, snapshot.status, collected, snapshot.required, tx)


def may_yet_be_signed(snapshot: Snapshot) -> bool:
    """Whether to look at it again: it is pending, and does not await this signer or is not recorded yet."""
    return snapshot.status is ProposalStatus.PENDING and snapshot.kind not in NOT_OF_OTHERS
