"""Approvals and declines, by a signer of the vault or, for a forward, by the owner of the profile.

Every submitted signature is verified outside the write lock, before anything is stored. The approval that
meets the threshold stores the final transaction and queues its broadcast in the same database transaction.
Where the vault asks for an approval by somebody else, too, it takes more signatures than it needs, until that
one is among them.
"""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Select, and_, bindparam, insert, select
from sqlalchemy.orm import Session

from custody.schemas.call import PermissionName
from custody.schemas.proposals import SIGN_PSBT, SignPsbtRequest, SignPsbtResponse, TxType
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.calls import Ctx, In, Steps, serves_in_parts
from custody.server.errors import (
    KeyIsRevoked,
    NotASigner,
    NotFound,
    PermissionDenied,
    SignatureInvalid,
    StateConflict,
)
from custody.server.jobs.outbox import BROADCAST, enqueue_new
from custody.server.keys.profiles import OwnProfile
from custody.server.proposals import bounds
from custody.server.proposals.ending import in_words, may_be_sent, released_signatures
from custody.server.proposals.lifecycle import HELD, require_newest
from custody.server.proposals.records import collected_signatures
from custody.server.proposals.seeing import APPROVER, may_see
from custody.server.proposals.verifying import Signer, Verified, verified
from custody.server.requests.changes import OutdatedDraft
from custody.server.rules import lifecycle
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import Caller
from custody.server.rules.keys import may_move_on
from custody.server.services import Services, Tools
from custody.server.store.models import (
    DecisionRow,
    KeyRow,
    PayeeRow,
    ProfileRow,
    ProposalRow,
    SignatureRow,
    VaultRow,
    VaultSignerRow,
)
from custody.server.vaults.stored import policy_of
from custody.server.webhooks.events import event_data
from multisig import Fingerprint, SignerProgress, Transaction, ends_of

ACTIVE: Final = "active"

SIGNED = Event(
    "SIGNATURE_SUBMITTED",
    "approved the proposal {proposal}[, but signed only its inputs {inputs}] // key {key}, role {role}",
    Category.SIGNING,
)
FINALISED = Event(
    "PROPOSAL_FINALISED", "gave the last signature of the proposal {proposal} // tx {txid}", Category.SIGNING
)
DECLINED = Event("PROPOSAL_DECLINED", "declined the proposal {proposal}", Category.SIGNING)


@serves_in_parts(SIGN_PSBT)
def sign_psbt(ctx: Ctx, request: SignPsbtRequest) -> Steps[SignPsbtResponse]:
    """Records the caller's decision. The approval that meets the threshold queues the broadcast in the same
    transaction.

    Raises NotFound; PermissionDenied; NotASigner; KeyIsRevoked; StateConflict (the proposal has ended, there
    is a newer version, they decided otherwise before); VaultFrozen; NotInAddressBook; PsbtMismatch. Then
    nothing is stored.
    """
    signer, checked = _signer_of(ctx, request.psbt_id, _SIGNER), None
    if request.psbt_base64 is not None:
        # A submitted PSBT is only parsed for callers who may sign.
        _require_live_key(ctx.db, signer)
    yield In.NOTHING
    if request.psbt_base64 is not None:
        checked = verified(request.psbt_base64, signer)
    ctx = yield In.WRITE
    answer = _submitted(ctx, request, checked)
    if answer.status is Status.SIGNED:
        yield In.NOTHING
        answer = _after_broadcast(ctx.services, answer)
    return answer


def _submitted(ctx: Ctx, request: SignPsbtRequest, checked: Verified | None) -> SignPsbtResponse:
    """``checked``: None for a decline. Raises Outdated where the stored PSBT has changed since."""
    signer = _signer_of(ctx, request.psbt_id, _SIGNER_LOCKED)
    if checked is None:
        return _decline(ctx, signer, request.reason)
    _require_live_key(ctx.db, signer)
    if signer.proposal.psbt != checked.base:
        raise OutdatedDraft("Another signer signed meanwhile.")
    if signer.proposal.tx_type == TxType.PROOF.value and not checked.progress.is_complete:
        raise SignatureInvalid("A proof has to be signed for all of its coins.")
    return _approve(ctx, signer, checked)


def _approve(ctx: Ctx, signer: Signer, checked: Verified) -> SignPsbtResponse:
    proposal, progress = signer.proposal, checked.progress
    if not checked.new and not _counts_anew(ctx, signer):
        said = "This signature was recorded before."
        return _answer(proposal, progress, checked.collected, said)
    if Status(proposal.status) in lifecycle.FINALISED:
        said = "The threshold was met without this signature; it was not recorded."
        return _nothing_new(ctx.db, proposal, said)
    if Status(proposal.status) is not Status.PENDING:
        raise StateConflict(f"The proposal is {proposal.status}; it takes no more signatures.")
    if signer.decision is not None and signer.decision.decision == "reject":
        raise StateConflict(
            "You have declined it: a decline is final.", hint="If it is to be paid, have it proposed again."
        )
    require_newest(ctx.db, proposal)
    if ctx.now >= proposal.expires_at:
        raise StateConflict("The proposal has expired.")
    if signer.vault is not None:
        # The vault's present controls, which may have changed since the proposal.
        bounds.require_thawed(ctx.db, signer.vault)
        bounds.require_other_maker(ctx.db, signer.vault, proposal, ctx.caller.user_id)
        bounds.require_listed(ctx.db, signer.vault, proposal.psbt)
    _keep(ctx, signer, checked)
    payload = event_data(proposal, user_id=ctx.caller.user_id, is_complete=progress.is_complete)
    inputs = None if progress.is_complete else list(progress.signed)
    facts = {"key": signer.key.id, "role": ctx.access.role_id, "inputs": inputs}
    ctx.event(SIGNED, payload, proposal=proposal.id, **facts)
    if checked.final is None:
        return _answer(proposal, progress, checked.collected, None)
    vault = signer.vault
    if vault is not None and (lacking := bounds.approvals_missing(ctx.db, vault, proposal.id)):
        whose = bounds.approver_words(ctx.db, vault, lacking)
        said = f"It has signatures enough, and waits for an approval from {whose}."
        return _answer(proposal, progress, checked.collected, said)
    finalise(ctx.tools, ctx.db, proposal, checked.final)
    ctx.event(FINALISED, proposal=proposal.id, txid=checked.final.txid)
    return _answer(proposal, progress, checked.collected, None)


def _counts_anew(ctx: Ctx, signer: Signer) -> bool:
    """They have signed, and hold the role now that a waiting payment lacks: they may approve it again."""
    if signer.vault is None or Status(signer.proposal.status) is not Status.PENDING:
        return False
    them = ctx.caller.user_id, ctx.access.role_id
    return bounds.approves_anew(ctx.db, signer.vault, signer.proposal.id, them)


def finalise(tools: Tools, db: Session, proposal: ProposalRow, final: Transaction) -> None:
    """The proposal is SIGNED, and due for broadcast; a proof is PROVEN, and never sent."""
    assert final.txid == proposal.txid_expected, "signatures of segwit inputs do not change the txid"
    proposal.final_tx = final.serialize()
    if proposal.tx_type == TxType.PROOF.value:
        tools.lifecycle.apply(db, proposal, lifecycle.LifecycleEvent.PROVEN)
    else:
        tools.lifecycle.apply(db, proposal, lifecycle.LifecycleEvent.THRESHOLD_MET)
        # It was pending until now: it has no job.
        enqueue_new(db, BROADCAST, [proposal.id], tools.clock())
        if proposal.tx_type == TxType.SEND.value:
            _add_payees(db, proposal.workspace_id, proposal.recipients)


def _add_payees(db: Session, workspace_id: int, addresses: Collection[str]) -> None:
    """What pays them has all its signatures."""
    ends = {ends_of(address) for address in addresses}
    there = select(PayeeRow.address).where(PayeeRow.workspace_id == workspace_id, PayeeRow.ends.in_(ends))
    new = set(addresses) - set(db.scalars(there))
    if new:
        db.execute(insert(PayeeRow), [{"workspace_id": workspace_id, "address": one} for one in sorted(new)])


def _keep(ctx: Ctx, signer: Signer, checked: Verified) -> None:
    signer.proposal.psbt = checked.signed
    if checked.new:
        signer.key.last_signed_at = ctx.now
    place = {"proposal_id": signer.proposal.id, "key_id": signer.key.id, "received_at": ctx.now}
    # Only the message's input of a proof is stored (`proofs`); its PSBT has all signatures.
    is_proof = signer.proposal.tx_type == TxType.PROOF.value
    new = [one for one in checked.new if not is_proof or not one.input_index]
    ctx.db.add_all(SignatureRow(**place, **vars(signature)) for signature in new)
    _decide(ctx, signer, "approve", is_complete=checked.progress.is_complete, reason=None)
    ctx.tools.lifecycle.touch(ctx.db, signer.proposal)


def _decide(ctx: Ctx, signer: Signer, decision: str, *, is_complete: bool, reason: str | None) -> None:
    """Replaces the signer's earlier decision."""
    row = signer.decision or DecisionRow(
        proposal_id=signer.proposal.id, key_id=signer.key.id, user_id=signer.key.user_id
    )
    row.decision, row.is_complete, row.reason, row.decided_at = decision, is_complete, reason, ctx.now
    row.role_id = ctx.access.role_id
    ctx.db.add(row)


def _decline(ctx: Ctx, signer: Signer, reason: str | None) -> SignPsbtResponse:
    db, proposal, known = ctx.db, signer.proposal, signer.decision
    if known is not None and known.decision == "approve":
        raise StateConflict(
            "You have signed it: a decline cannot revoke a signature.",
            hint="As long as it is not sent, have it cancelled, or freeze the vault.",
        )
    if known is not None:
        return _nothing_new(db, proposal, "Your decline was recorded before.")
    if Status(proposal.status) is not Status.PENDING:
        raise StateConflict(f"The proposal is {proposal.status}; it can no longer be declined.")
    _decide(ctx, signer, "reject", is_complete=False, reason=reason)
    ctx.tools.lifecycle.touch(db, proposal)
    said = "Your decline does not end it: to stop it, have it cancelled, or freeze the vault."
    # A forward has one signer.
    if declined := 1 if signer.vault is None else bounds.lost_by_decline(db, signer.vault, proposal):
        end_by_decline(ctx.tools, db, proposal, declined)
        said = "Your decline ends it: the others cannot complete it."
        if proposal.keeps_coins:
            said = f"{said} {in_words(proposal, released_signatures(db, proposal), None, offered=False)}"
    ctx.event(DECLINED, event_data(proposal, user_id=ctx.caller.user_id), proposal=proposal.id)
    return _nothing_new(db, proposal, said)


def end_by_decline(tools: Tools, db: Session, proposal: ProposalRow, declined: int) -> None:
    """The others cannot complete it here. Where those who have not declined are M, anybody could send it."""
    are_enough = declined <= proposal.n - proposal.m
    proposal.failure_code, proposal.keeps_coins = "declined", are_enough and may_be_sent(db, proposal)
    tools.lifecycle.apply(db, proposal, lifecycle.LifecycleEvent.THRESHOLD_LOST)


def _nothing_new(db: Session, proposal: ProposalRow, said: str | None) -> SignPsbtResponse:
    """Without a signature of this request."""
    return _answer(proposal, SignerProgress((), ()), collected_signatures(db, proposal.id), said)


def _answer(
    proposal: ProposalRow, progress: SignerProgress, collected: int, detail: str | None
) -> SignPsbtResponse:
    missing = list(progress.missing)
    if missing and detail is None:
        detail = f"Inputs {', '.join(map(str, missing))} still lack your signature."
    return SignPsbtResponse(
        psbt_id=proposal.id,
        status=Status(proposal.status),
        collected_signatures=min(collected, proposal.m),
        required_signatures=proposal.m,
        txid=proposal.txid,
        missing_inputs=missing,
        detail=detail,
    )


def _after_broadcast(services: Services, answer: SignPsbtResponse) -> SignPsbtResponse:
    """Waits a moment for the worker that broadcasts."""
    for _ in services.tools.changes.looks(services.broadcast_wait_seconds):
        with services.store.read() as db:
            proposal = db.get_one(ProposalRow, answer.psbt_id)
            update = {"status": Status(proposal.status), "txid": proposal.txid}
        answer = answer.model_copy(update=update)
        if answer.status is not Status.SIGNED:
            break
    return answer


def _signer_of(ctx: Ctx, psbt_id: str, query: Select[*tuple[Any, ...]]) -> Signer:
    """Raises NotFound; PermissionDenied (a vault's movement needs PAYMENT_APPROVE); NotASigner."""
    signer = ctx.db.execute(query, {"user_id": ctx.caller.user_id, "psbt_id": psbt_id}).one_or_none()
    if signer is None or signer[0].workspace_id != ctx.access.workspace_id or not may_see(ctx, signer[0]):
        raise NotFound("There is no such proposal in this workspace.")
    proposal, fingerprint, key, decision, vault = signer
    if proposal.profile_key_id is not None:
        return _owner(ctx.db, ctx.caller, proposal, proposal.profile_key_id)
    if not ctx.access.holds_any(APPROVER):
        raise PermissionDenied(
            f"Your role in this workspace does not carry {PermissionName.PAYMENT_APPROVE.value}."
        )
    if fingerprint is None:
        raise NotASigner("You are not a signer of this vault.")
    if proposal.screening == HELD:
        raise StateConflict("The vault's screening holds it: nobody decides before that lets it through.")
    return Signer(proposal, policy_of(vault), key, Fingerprint.from_hex(fingerprint), decision, vault)


def _owner(db: Session, caller: Caller, proposal: ProposalRow, key_id: str) -> Signer:
    """A forward moves one member's own money: only that member signs or declines it."""
    if proposal.created_by != caller.user_id:
        raise NotASigner("Only the member whose money it moves signs a forward.")
    key = db.get_one(KeyRow, key_id)
    policy = OwnProfile(key, db.get_one(ProfileRow, key_id)).policy(db)
    return Signer(proposal, policy, key, policy.key.fingerprint, db.get(DecisionRow, (proposal.id, key.id)))


_SIGNER = (
    select(ProposalRow, VaultSignerRow.fingerprint, KeyRow, DecisionRow, VaultRow)
    .outerjoin(
        VaultSignerRow,
        and_(VaultSignerRow.vault_id == ProposalRow.vault_id, VaultSignerRow.user_id == bindparam("user_id")),
    )
    .outerjoin(KeyRow, KeyRow.id == VaultSignerRow.key_id)
    .outerjoin(DecisionRow, and_(DecisionRow.proposal_id == ProposalRow.id, DecisionRow.key_id == KeyRow.id))
    .outerjoin(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
    .where(ProposalRow.id == bindparam("psbt_id"))
)
_SIGNER_LOCKED = _SIGNER.with_for_update(of=ProposalRow)


def _require_live_key(db: Session, signer: Signer) -> None:
    """A superseded key may still sign payments to vaults of the same workspace, for a vault's signers are
    fixed (P47), and forwards, which always pay such a vault. Raises KeyIsRevoked.
    """
    if signer.key.status == ACTIVE:
        return
    vault, psbt = signer.vault, signer.proposal.psbt
    if may_move_on(signer.key.revoked_reason) and (vault is None or bounds.psbt_stays(db, vault, psbt)):
        return
    whose = "with this profile" if signer.vault is None else "in this vault"
    raise KeyIsRevoked(f"Your key {whose} was revoked ({signer.key.revoked_reason}).")
