"""The status of deployments and calls of tokens, for many at once. It follows from their proposals and the
index of tokens, and is never stored (ADR 22).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import and_, select
from sqlalchemy.orm import Session, defer

from custody.schemas.asset_tokens import CallStatus, ContractStatus
from custody.schemas.proposals import ProposalStatus as Proposal
from custody.server.rules.lifecycle import ENDED
from custody.server.store.models import ProposalRow, TokenBlockRow, TokenTransactionRow
from multisig.tokens.machine import TokenFailure

# Of a call that would have no effect, and of one that was mined without.
FAILURE_WORDS: Final[Mapping[TokenFailure, str]] = {
    TokenFailure.MALFORMED: "Its data cannot be read.",
    TokenFailure.ALREADY_DEPLOYED: "The token was deployed before.",
    TokenFailure.NOT_ITS_BYTECODE: "The deployment is not of the bytecode that it names.",
    TokenFailure.NOT_THE_FIRST_OWNER: "The deployment does not come from the owner that the bytecode names.",
    TokenFailure.UNKNOWN_CONTRACT: "The token is not on the chain.",
    TokenFailure.NOT_THE_OWNER: "Only the token's owner may do this, and this vault is not.",
    TokenFailure.TOO_EARLY: "The deployment has no confirmation in an earlier block.",
    TokenFailure.ALREADY_STARTED: "The token was started already: init runs once.",
    TokenFailure.NOT_STARTED: "The token was not started: init comes first.",
    TokenFailure.PAUSED: "The token is paused: nothing is transferred until it is unpaused.",
    TokenFailure.NOT_PAUSED: "The token is not paused.",
    TokenFailure.NOT_LISTED: "The address is not on the token's whitelist.",
    TokenFailure.ALREADY_LISTED: "The address is on the token's whitelist already.",
    TokenFailure.OWNER_IS_LISTED: "The owner is always listed: nothing adds or removes it.",
    TokenFailure.WHITELIST_ALREADY_ON: "The whitelist is on already.",
    TokenFailure.WHITELIST_ALREADY_OFF: "The whitelist is off already.",
    TokenFailure.INSUFFICIENT_BALANCE: "The vault holds less of the token than that.",
    TokenFailure.ABOVE_MAXIMUM: "With that amount more would exist than the token's maximum supply.",
    TokenFailure.NOT_THE_OWNERS_ADDRESS: "The owner burns from its own address only: name the vault's.",
    TokenFailure.ALREADY_THE_OWNER: "The address is the token's owner already.",
}
# While the proposal is not confirmed. A call is broadcasting while any version of it is on the network: a
# replaced one may still be mined. A finalised transaction that was not sent yet has reached no node.
_BY_PROPOSAL: Final[Mapping[Proposal, CallStatus]] = {
    Proposal.PENDING: CallStatus.PENDING,
    Proposal.SIGNED: CallStatus.PENDING,
    Proposal.STALLED: CallStatus.STALLED,
    Proposal.BROADCASTING: CallStatus.BROADCASTING,
    Proposal.REPLACED: CallStatus.BROADCASTING,
    **dict.fromkeys(ENDED, CallStatus.FAILED),
}
# A token's record has no status for a stalled broadcast: it is still pending.
OF_CONTRACT: Final[Mapping[CallStatus, ContractStatus]] = {
    **{CallStatus(status.value): status for status in ContractStatus},
    CallStatus.STALLED: ContractStatus.PENDING,
}
# Of several versions of one transaction the most advanced decides; an ended one only where all have ended.
_PRECEDENCE: Final = (
    Proposal.CONFIRMED,
    Proposal.BROADCASTING,
    Proposal.REPLACED,
    Proposal.SIGNED,
    Proposal.STALLED,
    Proposal.PENDING,
)
_ENDED_WORDS: Final[Mapping[Proposal, str]] = {
    Proposal.REJECTED: "Too many signers declined: the others are too few.",
    Proposal.CANCELLED: "It was cancelled.",
    Proposal.EXPIRED: "It expired before enough signers had approved.",
    Proposal.INVALIDATED: "Another transaction spent a coin of it.",
    Proposal.FAILED: "The network refused it for good.",
}
TAKEN_BACK: Final = "It was taken back: its coins returned to the vault."


class IndexedOutcome(NamedTuple):
    """What the index of tokens has of a transaction. ``failure``: the failed rule, as the index stores it."""

    block_hash: str
    mined_at: datetime
    failure: str | None


@dataclass(frozen=True)
class TokenFamily:
    """A deployment or a call: its family of proposals. ``best``: the version that speaks for the family.
    ``reason``: why it is FAILED, else None. ``confirmed_at``: the time of its block, where it had its effect.

    ``txids``: of every version, broadcast or not.
    """

    best: ProposalRow
    status: CallStatus
    reason: str | None
    confirmed_at: datetime | None
    updated_at: datetime
    txids: frozenset[str]


def token_families(db: Session, chain: str, family_ids: Collection[str]) -> dict[str, TokenFamily]:
    """By the family's id."""
    families = _families(db, family_ids)
    best = {family_id: best_of(members) for family_id, members in families.items()}
    read = _judged(db, chain, [each for each in best.values() if each.status == Proposal.CONFIRMED])
    return {
        family_id: family_of(members, read.get(best[family_id].id)) for family_id, members in families.items()
    }


def best_of(members: Sequence[ProposalRow]) -> ProposalRow:
    """The member whose status is the family's. ``members``: all of them, the oldest first; among equals the
    newer one is taken. One without the token's data cancels the payment.
    """
    carrying = [member for member in members if member.op_return_hex is not None] or list(members)
    for status in _PRECEDENCE:
        chosen = [member for member in carrying if member.status == status]
        if chosen:
            return chosen[-1]
    return carrying[-1]


def family_of(members: Sequence[ProposalRow], judged: IndexedOutcome | None) -> TokenFamily:
    """``judged``: what the index has of `best_of` the members, in the block in which that is confirmed; None
    while the index has not read the block, or has read another branch: the effect is unknown.
    """
    best = best_of(members)
    if best.status != Proposal.CONFIRMED:
        status = _BY_PROPOSAL[Proposal(best.status)]
    elif judged is None:
        status = CallStatus.BROADCASTING
    else:
        status = CallStatus.CONFIRMED if judged.failure is None else CallStatus.FAILED
    return TokenFamily(
        best,
        status,
        _reason(members, best, judged) if status is CallStatus.FAILED else None,
        judged.mined_at if judged is not None and status is CallStatus.CONFIRMED else None,
        max(member.updated_at for member in members),
        frozenset(each.txid_expected for each in members),
    )


def _reason(members: Sequence[ProposalRow], best: ProposalRow, judged: IndexedOutcome | None) -> str:
    if judged is not None and judged.failure is not None:
        # With the rule's name, which programs look for.
        words = FAILURE_WORDS[TokenFailure(judged.failure)]
        return f"It was mined without effect: {words} ({judged.failure})"
    if any(each.status == Proposal.CONFIRMED and each.op_return_hex is None for each in members):
        return TAKEN_BACK
    return best.failure_reason or _ENDED_WORDS[Proposal(best.status)]


def _families(db: Session, family_ids: Collection[str]) -> Mapping[str, list[ProposalRow]]:
    """By family, its members, the oldest first, as `age_in_family` has it."""
    families: dict[str, list[ProposalRow]] = defaultdict(list)
    if not family_ids:
        return families
    of_them = select(ProposalRow).where(ProposalRow.family_id.in_(family_ids))
    # A hundred kilobytes each, which no status needs.
    light = of_them.options(defer(ProposalRow.psbt), defer(ProposalRow.final_tx))
    for row in sorted(db.scalars(light), key=lambda each: (each.fee_sats, each.id)):
        families[row.family_id].append(row)
    return families


def _judged(db: Session, chain: str, confirmed: Collection[ProposalRow]) -> dict[str, IndexedOutcome]:
    """By the proposal's id. Only where the index has read it in the block that the proposal names: the two
    follow the chain independently.
    """
    if not confirmed:
        return {}
    block = and_(
        TokenBlockRow.chain == TokenTransactionRow.chain, TokenBlockRow.height == TokenTransactionRow.height
    )
    query = (
        select(
            TokenTransactionRow.txid,
            TokenBlockRow.block_hash,
            TokenBlockRow.mined_at,
            TokenTransactionRow.failure,
        )
        .join(TokenBlockRow, block)
        .where(
            TokenTransactionRow.chain == chain,
            TokenTransactionRow.txid.in_([version.txid_expected for version in confirmed]),
        )
    )
    by_place = {(row.txid, row.block_hash): IndexedOutcome(*row[1:]) for row in db.execute(query)}
    return {
        version.id: by_place[place]
        for version in confirmed
        if (place := (version.txid_expected, version.block_hash)) in by_place
    }
