"""What waits for a person: proposals for their signature, changes for their confirmation."""

from datetime import datetime
from typing import Final

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from custody.schemas.changes import ChangeStatus
from custody.schemas.permissions import PermissionName
from custody.schemas.proposals import ProposalStatus
from custody.server.mail.jobs import plain
from custody.server.mail.waiting import Item
from custody.server.proposals.records import has_decided
from custody.server.rules.limits import in_btc
from custody.server.second_person.requirement import CONFIRMS
from custody.server.store.models import (
    KeyRow,
    MembershipRow,
    OrganisationRow,
    PendingChangeRow,
    ProposalRow,
    RolePermissionRow,
    VaultRow,
    VaultSignerRow,
    WorkspaceRow,
)
from multisig import Sats

MAX_FOUND: Final = 100


def waiting_for(db: Session, user_id: int, now: datetime) -> list[Item]:
    """What the person can sign or confirm, the oldest first; a change that cools off says until when."""
    return [*_proposals(db, user_id, now), *_changes(db, user_id, now)]


def _proposals(db: Session, user_id: int, now: datetime) -> list[Item]:
    has_seat = exists().where(
        VaultSignerRow.vault_id == ProposalRow.vault_id,
        VaultSignerRow.user_id == user_id,
        KeyRow.id == VaultSignerRow.key_id,
        KeyRow.revoked_reason.is_(None) | (KeyRow.revoked_reason != "lost"),
    )
    may_approve = exists().where(
        MembershipRow.workspace_id == ProposalRow.workspace_id,
        MembershipRow.user_id == user_id,
        RolePermissionRow.role_id == MembershipRow.role_id,
        RolePermissionRow.permission == PermissionName.PAYMENT_APPROVE.value,
    )
    query = (
        select(ProposalRow, VaultRow.name, WorkspaceRow.name, OrganisationRow.name)
        .join(VaultRow, VaultRow.id == ProposalRow.vault_id)
        .join(WorkspaceRow, WorkspaceRow.id == ProposalRow.workspace_id)
        .join(OrganisationRow, OrganisationRow.id == WorkspaceRow.organisation_id)
        .where(
            ProposalRow.status == ProposalStatus.PENDING.value,
            ProposalRow.replaced_by_id.is_(None),
            ProposalRow.profile_key_id.is_(None),
            ProposalRow.expires_at > now,
            VaultRow.frozen_at.is_(None),
            VaultRow.maker_may_approve | (ProposalRow.created_by != user_id),
            has_seat,
            may_approve,
            ~has_decided(user_id),
        )
        .order_by(ProposalRow.created_at, ProposalRow.id)
        .limit(MAX_FOUND)
    )
    return [_proposal(*row) for row in db.execute(query)]


def _proposal(proposal: ProposalRow, vault: str, workspace: str, organisation: str) -> Item:
    where = f"vault {plain(vault)}, {plain(workspace)} of {plain(organisation)}"
    words = f"{proposal.tx_type} of {where}: proposal {proposal.id}"
    paid = [
        f"{in_btc(Sats(amount))} BTC to {address}"
        for amount, address in zip(proposal.amounts_sats, proposal.recipients, strict=False)
    ]
    return Item(proposal.id, words, f"{words}, {', '.join(paid)}" if paid else words)


def _changes(db: Session, user_id: int, now: datetime) -> list[Item]:
    query = (
        select(PendingChangeRow, OrganisationRow.name)
        .join(OrganisationRow, OrganisationRow.id == PendingChangeRow.organisation_id)
        .where(
            PendingChangeRow.status == ChangeStatus.PENDING.value,
            PendingChangeRow.expires_at > now,
            PendingChangeRow.asked_by != user_id,
            PendingChangeRow.organisation_id.in_(
                select(WorkspaceRow.organisation_id)
                .join(MembershipRow, MembershipRow.workspace_id == WorkspaceRow.id)
                .where(MembershipRow.user_id == user_id)
            ),
            exists().where(MembershipRow.user_id == user_id, CONFIRMS).correlate(PendingChangeRow),
        )
        .order_by(PendingChangeRow.asked_at, PendingChangeRow.id)
        .limit(MAX_FOUND)
    )
    found = []
    for change, organisation in db.execute(query):
        call = change.path.rpartition("/")[2]
        later = f", not before {change.not_before:%Y-%m-%d %H:%M} UTC" if change.not_before > now else ""
        words = (
            f"change of {plain(organisation)}, {call}, asked for by {plain(change.asked_by_name)}: "
            f"change {change.id}{later}"
        )
        found.append(Item(change.id, words, words))
    return found
