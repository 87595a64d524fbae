"""What a member or a vault has used of the current cycle, summed by the database."""

from datetime import datetime

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from custody.server.domain.lifecycle import ENDED
from custody.server.domain.limits import Usage
from custody.server.service.proposals.families import holding
from custody.server.store.models import ChainCoin, Proposal, ProposalInput, Vault

_ENDED = tuple(sorted(status.value for status in ENDED))


def usage_of_member(
    db: Session, workspace_id: int, user_id: int, since: datetime, family_id: str | None = None
) -> Usage:
    """What the member proposed in the workspace since then, whatever role they held and whether they are still in it.

    ``family_id``: the movement that a new version would belong to.
    """
    mine = and_(Proposal.workspace_id == workspace_id, Proposal.created_by == user_id)
    return _usage(db, mine, since, family_id)


def usage_of_vault(db: Session, vault_id: str, since: datetime, family_id: str | None = None) -> Usage:
    """What was proposed from the vault since then, by whomever."""
    return _usage(db, Proposal.vault_id == vault_id, since, family_id)


def _usage(db: Session, whose: ColumnElement[bool], since: datetime, family_id: str | None) -> Usage:
    families = (
        select(Proposal.family_id, func.max(Proposal.movement_sats).label("amount"))
        .where(whose, Proposal.created_at >= since, _counts())
        .group_by(Proposal.family_id)
        .subquery()
    )
    total = db.scalar(select(func.coalesce(func.sum(families.c.amount), 0)))
    held = db.scalar(select(families.c.amount).where(families.c.family_id == family_id)) if family_id else 0
    return Usage(others=int(total or 0) - int(held or 0), held=int(held or 0))


def _counts() -> ColumnElement[bool]:
    """Every version that may still be mined, was, or is on its way: a replaced one too, for nodes may prefer it yet.

    An ended one holds nothing, unless it was cancelled with signatures out and keeps its coins, or its signers took it to the
    network by themselves.
    """
    return or_(holding(), and_(Proposal.status.in_(_ENDED), _left_anyway()))


def _left_anyway() -> ColumnElement[bool]:
    chain = select(Vault.chain).where(Vault.id == Proposal.vault_id).correlate(Proposal).scalar_subquery()
    return exists().where(
        ProposalInput.proposal_id == Proposal.id,
        ChainCoin.chain == chain,
        ChainCoin.txid == ProposalInput.txid,
        ChainCoin.vout == ProposalInput.vout,
        ChainCoin.spent_by == Proposal.txid_expected,
    )
