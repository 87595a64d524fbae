"""What a member or a vault has used of the current cycle, summed by the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, exists, func, or_, select
from sqlalchemy.orm import Session

from custody.server.domain.lifecycle import ENDED
from custody.server.domain.limits import Usage
from custody.server.service.lifecycle import holding
from custody.server.store.models import ChainCoin, Proposal, ProposalInput, Vault

_ENDED = tuple(sorted(status.value for status in ENDED))


def usage_of_member(
    db: Session, workspace_id: int, user_id: int, since: datetime, family_id: str | None = None
) -> Usage:
    """What the member proposed in the workspace since then, whatever role they held and whether they are still in it.

    ``family_id``: the movement that a new version would belong to.
    """
    whose = {"workspace_id": workspace_id, "user_id": user_id}
    return _usage(db, _OF_MEMBER, {**whose, "since": since, "family_id": family_id})


def usage_of_vault(db: Session, vault_id: str, since: datetime, family_id: str | None = None) -> Usage:
    """What was proposed from the vault since then, by whomever."""
    return _usage(db, _OF_VAULT, {"vault_id": vault_id, "since": since, "family_id": family_id})


def most_of_member(db: Session, workspace_id: int, user_id: int, since: datetime) -> int:
    """No less than ``usage_of_member``: every version counts, and the ended ones too. One index holds all that is added up,
    so that it takes a twentieth of the time.
    """
    values = {"workspace_id": workspace_id, "user_id": user_id, "members_since": since}
    return db.scalar(_MEMBERS, values) or 0


def most_of_vault(db: Session, vault_id: str, since: datetime) -> int:
    """The same for ``usage_of_vault``."""
    return db.scalar(_VAULTS, {"vault_id": vault_id, "vaults_since": since}) or 0


@dataclass(frozen=True)
class Whose:
    """Those whose limits one movement has to fit, each with when its cycle began."""

    workspace_id: int
    user_id: int
    members_since: datetime
    vault_id: str
    vaults_since: datetime


def most_of(db: Session, whose: Whose) -> tuple[int, int]:
    """`most_of_member` and `most_of_vault`."""
    member, vault = db.execute(_MOST_OF, vars(whose)).one()
    return member or 0, vault or 0


def _usage(db: Session, sums: Select[int, int], whose: Mapping[str, object]) -> Usage:
    others, held = db.execute(sums, whose).one()
    return Usage(others=int(others), held=int(held))


def _sums(whose: ColumnElement[bool]) -> Select[int, int]:
    """What other families count for, and what the movement's own does, if it has one."""
    families = (
        select(Proposal.family_id, func.max(Proposal.movement_sats).label("amount"))
        .where(whose, Proposal.created_at >= bindparam("since"), counts())
        .group_by(Proposal.family_id)
        .subquery()
    )
    own = families.c.family_id == bindparam("family_id")
    others, held = case((own, 0), else_=families.c.amount), case((own, families.c.amount), else_=0)
    return select(func.coalesce(func.sum(others), 0), func.coalesce(func.sum(held), 0))


def counts() -> ColumnElement[bool]:
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


_OF_MEMBER = _sums(
    and_(
        Proposal.workspace_id == bindparam("workspace_id"),
        Proposal.created_by == bindparam("user_id"),
        Proposal.counts_for_role,
    )
)
_OF_VAULT = _sums(Proposal.vault_id == bindparam("vault_id"))
_MOST = select(func.sum(Proposal.movement_sats))
_MEMBERS = _MOST.where(
    Proposal.created_at >= bindparam("members_since"),
    Proposal.workspace_id == bindparam("workspace_id"),
    Proposal.created_by == bindparam("user_id"),
)
_VAULTS = _MOST.where(
    Proposal.created_at >= bindparam("vaults_since"), Proposal.vault_id == bindparam("vault_id")
)
_MOST_OF = select(_MEMBERS.scalar_subquery(), _VAULTS.scalar_subquery())
