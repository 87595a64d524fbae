"""Approvals and declines, by a signer of the vault or, for a forward, by the owner of the profile.

Every submitted signature is verified outside the write lock, before anything is stored. The approval that
meets the threshold stores the final transaction and queues its broadcast in the same database transaction.
"""

from typing import Any, Final

from sqlalchemy import Select, and_, bindparam, func, select
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
from custody.server.proposals.bounds import (
    require_listed,
    require_other_maker,
    require_thawed,
    stay_in_workspace,
)
from custody.server.proposals.lifecycle import require_newest
from custody.server.proposals.records import collected_signatures
from custody.server.proposals.verifying import Signer, Verified, verified
from custody.server.requests.changes import OutdatedDraft
from custody.server.rules import lifecycle
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import Caller
from custody.server.rules.keys import may_move_on
from custody.server.services import Services
from custody.server.store.models import (
    DecisionRow,
    KeyRow,
    ProfileRow,
    ProposalRow,
    SignatureRow,
    VaultRow,
    VaultSignerRow,
)
from custody.server.vaults.stored import policy_of
from custody.server.webhooks.events import event_data
from multisig import Fingerprint, Psbt, SignerProgress, Transaction

ACTIVE: Final = "active"
APPROVER = frozenset({PermissionName.PAYMENT_APPROVE})

SIGNED = Event(
    "SIGNATURE_SUBMITTED",
    "approved the proposal {proposal}[, but signed only its inputs {inputs}] // key {key}",
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

    Raises NotFound; PermissionDenied; NotASigner; KeyIsRevoked; StateConflict (the proposal has ended, or
    there is a newer version); VaultFrozen; NotASigner; NotInAddressBook; PsbtMismatch. Then nothing
    is stored.
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
    if not checked.new:
        said = "This signature was recorded before."
        return _answer(proposal, progress, checked.collected, said)
    if Status(proposal.status) in lifecycle.FINALISED:
        said = "The threshold was met without this signature; it was not recorded."
        return _nothing_new(ctx.db, proposal, said)
    if Status(proposal.status) is not Status.PENDING:
        raise StateConflict(f"The proposal is {proposal.status}; it takes no more signatures.")
    require_newest(ctx.db, proposal)
    if ctx.now >= proposal.expires_at:
        raise StateConflict("The proposal has expired.")
    if signer.vault is not None:
        # The vault's present controls, which may have changed since the proposal.
        require_thawed(ctx.db, signer.vault)
        require_other_maker(ctx.db, signer.vault, proposal, ctx.caller.user_id)
        require_listed(ctx.db, signer.vault, proposal.psbt)
    _keep(ctx, signer, checked)
    payload = event_data(proposal, user_id=ctx.caller.user_id, is_complete=progress.is_complete)
    inputs = None if progress.is_complete else list(progress.signed)
    ctx.event(SIGNED, payload, proposal=proposal.id, key=signer.key.id, inputs=inputs)
    if checked.final is not None:
        _finalise(ctx, proposal, checked.final)
    return _answer(proposal, progress, checked.collected, None)


def _finalise(ctx: Ctx, proposal: ProposalRow, final: Transaction) -> None:
    """The proposal is SIGNED, and due for broadcast; a proof is PROVEN, and never sent."""
    assert final.txid == proposal.txid_expected, "signatures of segwit inputs do not change the txid"
    proposal.final_tx = final.serialize()
    if proposal.tx_type == TxType.PROOF.value:
        ctx.tools.lifecycle.apply(ctx.db, proposal, lifecycle.LifecycleEvent.PROVEN)
    else:
        ctx.tools.lifecycle.apply(ctx.db, proposal, lifecycle.LifecycleEvent.THRESHOLD_MET)
        # It was pending until now, and is never again.
        enqueue_new(ctx.db, BROADCAST, [proposal.id], ctx.now)
    ctx.event(FINALISED, proposal=proposal.id, txid=final.txid)


def _keep(ctx: Ctx, signer: Signer, checked: Verified) -> None:
    signer.proposal.psbt = checked.signed
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
    ctx.db.add(row)


def _decline(ctx: Ctx, signer: Signer, reason: str | None) -> SignPsbtResponse:
    db, proposal, known = ctx.db, signer.proposal, signer.decision
    if known is not None:
        has_signed = known.decision == "approve"
        said = "You have signed: a decline cannot revoke a signature."
        return _nothing_new(db, proposal, said if has_signed else "Your decline was recorded before.")
    if Status(proposal.status) is not Status.PENDING:
        raise StateConflict(f"The proposal is {proposal.status}; it can no longer be declined.")
    _decide(ctx, signer, "reject", is_complete=False, reason=reason)
    ctx.tools.lifecycle.touch(db, proposal)
    declined = DecisionRow.proposal_id == proposal.id, DecisionRow.decision == "reject"
    declines = db.scalar(select(func.count()).where(*declined)) or 0
    if lifecycle.threshold_lost(declines, proposal.m, proposal.n):
        ctx.tools.lifecycle.apply(db, proposal, lifecycle.LifecycleEvent.THRESHOLD_LOST)
    ctx.event(DECLINED, event_data(proposal, user_id=ctx.caller.user_id), proposal=proposal.id)
    return _nothing_new(db, proposal, None)


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
        collected_signatures=collected,
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
    if signer is None or signer[0].workspace_id != ctx.access.workspace_id:
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
    if may_move_on(signer.key.revoked_reason):
        outputs = Psbt.parse(signer.proposal.psbt).outputs
        scripts = {output.script_pubkey for output in outputs}
        if signer.vault is None or stay_in_workspace(db, signer.vault, scripts):
            return
    whose = "with this profile" if signer.vault is None else "in this vault"
    raise KeyIsRevoked(f"Your key {whose} was revoked ({signer.key.revoked_reason}).")
