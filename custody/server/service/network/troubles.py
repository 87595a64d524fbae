"""Finds the trouble of a proposal's transaction from its coins whenever the chain has changed, and stores it,
so that long polls return it.
"""

from collections.abc import Sequence

import structlog
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TroubleKind
from custody.server.domain.lifecycle import REPLACEABLE, Observation, Rival, kind_of, words_of
from custody.server.domain.ports import Clock
from custody.server.store.models import ChainCoin, Proposal, ProposalInput
from multisig import FeeRate

log = structlog.get_logger()


class Troubles:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def look(
        self, db: Session, proposal: Proposal, coins: Sequence[ChainCoin | None], asked: FeeRate | None
    ) -> bool:
        """Whether the trouble has changed. ``coins`` are those of its inputs, in order."""
        rival = _rival(proposal, coins) if Status(proposal.status) in _MAY_BE_TROUBLED else None
        kind = self._kind(db, proposal, coins, rival, asked)
        txid = None if rival is None or kind not in _OF_A_RIVAL else rival.spent_by
        found = None if kind is None else kind.value
        if (found, txid) == (proposal.trouble, proposal.trouble_txid):
            return False
        proposal.trouble, proposal.trouble_txid = found, txid
        proposal.trouble_since = None if kind is None else self._clock()
        pays = FeeRate(proposal.fee_rate_sat_per_kvb)
        proposal.trouble_words = (
            None
            if kind is None
            else words_of(kind, rival=txid, pays=pays, asked=asked, since=proposal.updated_at)
        )
        log.info("proposal troubled", proposal=proposal.id, trouble=found, rival=txid)
        return True

    def _kind(
        self,
        db: Session,
        proposal: Proposal,
        coins: Sequence[ChainCoin | None],
        rival: ChainCoin | None,
        asked: FeeRate | None,
    ) -> TroubleKind | None:
        kind = kind_of(
            Status(proposal.status),
            _observed(proposal, coins),
            _rival_kind(db, proposal, rival),
            self._clock() - proposal.updated_at,
            is_lost=proposal.failure_code == "coin-spent" and rival is not None,
            is_cheap=asked is not None and proposal.fee_rate_sat_per_kvb < asked.sat_per_kvb,
        )
        return None if kind is TroubleKind.SLOW and _has_child(db, proposal) else kind


_MAY_BE_TROUBLED = REPLACEABLE | {Status.INVALIDATED}
_OF_A_RIVAL = frozenset({TroubleKind.CONFLICT, TroubleKind.DOUBLE_SPENT})


def _rival(proposal: Proposal, coins: Sequence[ChainCoin | None]) -> ChainCoin | None:
    """A coin of the proposal that another transaction spends, preferably a confirmed one."""
    taken = [
        coin for coin in coins if coin is not None and coin.spent_by not in {None, proposal.txid_expected}
    ]
    return min(taken, key=lambda coin: coin.spent_height is None, default=None)


def _observed(proposal: Proposal, coins: Sequence[ChainCoin | None]) -> Observation:
    is_there = all(coin is not None and coin.spent_by == proposal.txid_expected for coin in coins)
    return Observation.IN_MEMPOOL if is_there else Observation.ABSENT


def _rival_kind(db: Session, proposal: Proposal, rival: ChainCoin | None) -> Rival:
    if rival is None:
        return Rival.NONE
    version = exists().where(
        Proposal.txid_expected == rival.spent_by, Proposal.family_id == proposal.family_id
    )
    return Rival.VERSION if db.scalar(select(version)) else Rival.OTHER


def _has_child(db: Session, proposal: Proposal) -> bool:
    """Whether a broadcast child pays for it."""
    child = exists().where(
        ProposalInput.txid == proposal.txid_expected,
        Proposal.id == ProposalInput.proposal_id,
        Proposal.status == Status.BROADCASTING.value,
    )
    return bool(db.scalar(select(child)))
