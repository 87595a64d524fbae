"""Revoking a key: who may, the quorums that must remain, and the approvals that are withdrawn."""

from dataclasses import replace
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.schemas import keys as wire
from custody.schemas.call import PermissionName
from custody.schemas.keys import REVOKE_KEY, RevokedReason
from custody.schemas.proposals import ProposalStatus, TxType
from custody.server import errors
from custody.server.calls import Ctx, serves
from custody.server.keys.calls import key_shape
from custody.server.keys.quorums import SHORT, left_short_by, workspaces_where
from custody.server.people.staff import membership_of, organisations_of
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR, PLATFORM, Caller
from custody.server.store.models import (
    DecisionRow,
    KeyRow,
    MembershipRow,
    ProposalRow,
    RoleRow,
    SecondPersonRuleRow,
    SignatureRow,
    VaultSignerRow,
    WorkspaceRow,
)
from custody.server.vaults.stored import place_of
from custody.server.webhooks.events import event_data, tell_revoked
from multisig import Psbt

NO_KEY: Final = "There is no such key."
REVOKED = Event("KEY_REVOKED", "// key {key} of {user}, {reason}" + SHORT, Category.KEYS)
WITHDRAWN = Event(
    "SIGNATURE_WITHDRAWN",
    "The approval of the proposal {proposal} by a lost key no longer counts"
    " // key {key}[, all {signers} signers of the proof sign it again]",
    Category.SIGNING,
)


@serves(REVOKE_KEY)
def revoke_key(ctx: Ctx, request: wire.RevokeKeyRequest) -> wire.Key:
    """Any member's key by the operator. A repeated request changes nothing. Raises NotFound,
    PermissionDenied, SecondPersonNeeded (another member's key), StateConflict (a lost key stays lost),
    StateConflict (a vault would keep too few signers, unless forced).
    """
    db, caller, key = ctx.db, ctx.caller, ctx.db.get(KeyRow, request.key_id)
    if key is None:
        raise errors.NotFound(NO_KEY)
    if caller is not OPERATOR and key.user_id != caller.user_id:
        served = _require_administrator(db, caller, key, request.reason)
        # Only a change that a second person confirms has a workspace.
        agreed_in = None if ctx.maybe_access is None else ctx.maybe_access.organisation_id
        _require_second_person(db, served, agreed_in)
    if key.revoked_reason == request.reason:
        return key_shape(ctx, key)
    if key.revoked_reason == "lost":
        raise errors.StateConflict("The key was marked lost, and that is final.")
    sees = None if caller is OPERATOR else caller.user_id
    short = left_short_by(db, ctx.now, sees, VaultSignerRow.key_id == key.id, is_forced=request.force)
    key.status, key.revoked_reason, key.updated_at = "revoked", request.reason, ctx.now
    db.flush()
    if request.reason == "lost":
        _withdraw_approvals(ctx, key)
    tell_revoked(ctx.tools.events, db, key)
    facts = {"key": key.id, "user": key.user_id, "reason": key.revoked_reason}
    # In no workspace's log, wherever a second person confirmed it: a key is its owner's.
    ctx.tools.audit.record(db, caller, REVOKED, None, **facts, short_vaults=short)
    return key_shape(ctx, key)


def _withdraw_approvals(ctx: Ctx, key: KeyRow) -> None:
    """Withdraws the key's approvals of pending proposals: a thief may have had the device for some time.

    A proposal that has met its threshold goes on. A withdrawn signature stays valid on the chain for
    anyone with a copy, but the platform no longer counts it as one of M. All signers of a proof sign it
    again: the rows hold only signatures of its message, and its PSBT is made from the rows.
    """
    db, tools = ctx.db, ctx.tools
    signed = select(SignatureRow.proposal_id).where(SignatureRow.key_id == key.id)
    query = select(ProposalRow).where(
        ProposalRow.status == ProposalStatus.PENDING.value, ProposalRow.id.in_(signed)
    )
    for proposal in db.scalars(query.order_by(ProposalRow.id)).all():
        keys = {key.id}
        if proposal.tx_type == TxType.PROOF.value:
            keys.update(
                db.scalars(select(SignatureRow.key_id).where(SignatureRow.proposal_id == proposal.id))
            )
        for row in (SignatureRow, DecisionRow):
            db.execute(delete(row).where(row.proposal_id == proposal.id, row.key_id.in_(keys)))
        proposal.psbt = _with_remaining_signatures(db, proposal)
        proposal.withdrawn_signatures += len(keys)
        tools.lifecycle.touch(db, proposal)
        again = len(keys) if len(keys) > 1 else None
        facts = {"proposal": proposal.id, "key": key.id, "signers": again}
        place = place_of(db, proposal.workspace_id)
        known = _name_known_in(db, ctx.caller, key, proposal.workspace_id)
        payload = event_data(proposal, user_id=key.user_id)
        tools.audit.record(db, known, WITHDRAWN, place, payload, **facts)


def _name_known_in(db: Session, caller: Caller, key: KeyRow, workspace_id: int) -> Caller:
    """The caller as a workspace's log may name them: that of another tenant, where a former member's approval
    waits, must not name users unknown to it (P24). The trace id still leads the operator to the user.
    """
    if caller is OPERATOR or caller.user_id == key.user_id:
        return caller
    is_member = membership_of(db, caller.user_id, workspace_id) is not None
    return caller if is_member else replace(PLATFORM, trace_id=caller.trace_id)


def _with_remaining_signatures(db: Session, proposal: ProposalRow) -> bytes:
    left: dict[int, dict[bytes, bytes]] = {}
    for row in db.scalars(select(SignatureRow).where(SignatureRow.proposal_id == proposal.id)):
        left.setdefault(row.input_index, {})[row.public_key] = row.signature
    return Psbt.parse(proposal.psbt).without_signatures().with_signatures(left).to_bytes()


def _require_administrator(db: Session, caller: Caller, key: KeyRow, reason: RevokedReason) -> set[int]:
    """The owner's workspaces on the key's network. The key serves them all, so only a caller who manages
    users in each of them may revoke it. Raises NotFound, PermissionDenied.
    """
    if not _are_colleagues(db, caller.user_id, key.user_id):
        raise errors.NotFound(NO_KEY)
    if reason != "lost":
        raise errors.NoRoleOpens("Only its owner replaces a key; an administrator marks it lost.")
    served = _workspaces_on(db, key.user_id, key.network)
    if not served or not served <= workspaces_where(db, caller.user_id, [PermissionName.MANAGE_USERS]):
        needed = PermissionName.MANAGE_USERS
        raise errors.PermissionDenied(
            f"To mark a member's key lost you need {needed} in each of their workspaces on {key.network}."
        )
    return served


def _require_second_person(db: Session, served: set[int], agreed_in: int | None) -> None:
    """Marking a key lost is final and excludes its owner from every vault: where an organisation of the key
    has the rule of two people, it needs both. The owner alone can revoke the key at once, and one signer can
    freeze a vault. Raises SecondPersonNeeded.
    """
    rules = (
        select(SecondPersonRuleRow.organisation_id, RoleRow.name)
        .join(RoleRow, RoleRow.id == SecondPersonRuleRow.confirming_role_id)
        .join(WorkspaceRow, WorkspaceRow.organisation_id == SecondPersonRuleRow.organisation_id)
        .where(WorkspaceRow.id.in_(served))
        .order_by(SecondPersonRuleRow.organisation_id)
    )
    for organisation_id, role in db.execute(rules):
        if organisation_id != agreed_in:
            raise errors.SecondPersonNeeded(
                f"An organisation that this key serves wants a second person, in the role {role}, "
                "to confirm that a member's key is lost. The owner can mark it lost alone."
            )


def _workspaces_on(db: Session, user_id: int, network: str) -> set[int]:
    query = (
        select(MembershipRow.workspace_id)
        .join(WorkspaceRow, WorkspaceRow.id == MembershipRow.workspace_id)
        .where(MembershipRow.user_id == user_id, WorkspaceRow.network == network)
    )
    return set(db.scalars(query))


def _are_colleagues(db: Session, user_id: int, other_id: int) -> bool:
    one, other = (set(db.scalars(organisations_of(each))) for each in (user_id, other_id))
    return not one.isdisjoint(other)
