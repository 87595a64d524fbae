"""What waits for a person: proposals for their signature, changes for their confirmation."""

from datetime import datetime
from typing import Final

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from custody.schemas.changes import ChangeStatus
from custody.schemas.permissions import PermissionName
from custody.schemas.proposals import ProposalStatus
from custody.server.domain.limits import in_btc
from custody.server.service.mail.jobs import plain
from custody.server.service.mail.waiting import Item
from custody.server.service.people.second_person import CONFIRMS
from custody.server.service.proposals.searching import has_decided
from custody.server.store.models import (
    Key,
    Membership,
    Organisation,
    PendingChange,
    Proposal,
    RolePermission,
    Vault,
    VaultSigner,
    Workspace,
)
from multisig import Sats

MAX_FOUND: Final = 100


def waiting_for(db: Session, user_id: int, now: datetime) -> list[Item]:
    """What the person can sign or confirm, the oldest first; a change that cools off says until when."""
    return [*_proposals(db, user_id, now), *_changes(db, user_id, now)]


def _proposals(db: Session, user_id: int, now: datetime) -> list[Item]:
    has_seat = exists().where(
        VaultSigner.vault_id == Proposal.vault_id,
        VaultSigner.user_id == user_id,
        Key.id == VaultSigner.key_id,
        Key.revoked_reason.is_(None) | (Key.revoked_reason != "lost"),
    )
    may_approve = exists().where(
        Membership.workspace_id == Proposal.workspace_id,
        Membership.user_id == user_id,
        RolePermission.role_id == Membership.role_id,
        RolePermission.permission == PermissionName.PAYMENT_APPROVE.value,
    )
    query = (
        select(Proposal, Vault.name, Workspace.name, Organisation.name)
        .join(Vault, Vault.id == Proposal.vault_id)
        .join(Workspace, Workspace.id == Proposal.workspace_id)
        .join(Organisation, Organisation.id == Workspace.organisation_id)
        .where(
            Proposal.status == ProposalStatus.PENDING.value,
            Proposal.replaced_by_id.is_(None),
            Proposal.profile_key_id.is_(None),
            Proposal.expires_at > now,
            Vault.frozen_at.is_(None),
            Vault.maker_may_approve | (Proposal.created_by != user_id),
            has_seat,
            may_approve,
            ~has_decided(user_id),
        )
        .order_by(Proposal.created_at, Proposal.id)
        .limit(MAX_FOUND)
    )
    return [_proposal(*row) for row in db.execute(query)]


def _proposal(proposal: Proposal, vault: str, workspace: str, organisation: str) -> Item:
    where = f"vault {plain(vault)}, {plain(workspace)} of {plain(organisation)}"
    words = f"{proposal.tx_type} of {where}: proposal {proposal.id}"
    paid = [
        f"{in_btc(Sats(amount))} BTC to {address}"
        for amount, address in zip(proposal.amounts_sats, proposal.recipients, strict=False)
    ]
    return Item(proposal.id, words, f"{words}, {', '.join(paid)}" if paid else words)


def _changes(db: Session, user_id: int, now: datetime) -> list[Item]:
    query = (
        select(PendingChange, Organisation.name)
        .join(Organisation, Organisation.id == PendingChange.organisation_id)
        .where(
            PendingChange.status == ChangeStatus.PENDING.value,
            PendingChange.expires_at > now,
            PendingChange.asked_by != user_id,
            PendingChange.organisation_id.in_(
                select(Workspace.organisation_id)
                .join(Membership, Membership.workspace_id == Workspace.id)
                .where(Membership.user_id == user_id)
            ),
            exists().where(Membership.user_id == user_id, CONFIRMS).correlate(PendingChange),
        )
        .order_by(PendingChange.asked_at, PendingChange.id)
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
