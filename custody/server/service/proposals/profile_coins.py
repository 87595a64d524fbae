"""A profile's coins: which a forward may spend.

Whoever knows the address can send any number of coins to it. What is read of them is bounded: the largest of each kind.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.server.domain.selection import MAX_INPUTS, Candidate
from custody.server.service.keys.profiles import ProfileScripts
from custody.server.service.proposals.coins import COINBASE_MATURITY, Holding, holding_of, is_locked
from custody.server.store.models import ChainCoin, Proposal, ProposalInput
from multisig import CHANGE, Sats


@dataclass(frozen=True)
class ProfilePurse:
    """Unspent, mature coins at the profile's two scripts, at a tip."""

    chain: str
    scripts: ProfileScripts
    tip_height: int

    def pool(self, db: Session) -> dict[Candidate, Holding]:
        """Those that no proposal holds: the largest confirmed ones, changes of our own, and unconfirmed deposits."""
        waiting, own = ChainCoin.height.is_(None), self._is_own_change()
        kinds = (~waiting, and_(waiting, own), and_(waiting, ~own))
        return {
            self._candidate(coin, is_own=is_own): holding_of(coin)
            for kind in kinds
            for coin, is_own in self._largest(db, kind, own)
        }

    def total(self, db: Session, *, allow_unconfirmed: bool, locked: bool) -> Sats:
        """What a forward could spend. ``locked``: of what proposals hold instead."""
        may_spend = [] if allow_unconfirmed else [or_(ChainCoin.height.is_not(None), self._is_own_change())]
        held = is_locked() if locked else ~is_locked()
        query = select(func.coalesce(func.sum(ChainCoin.amount_sats), 0))
        return Sats(int(db.scalar(query.where(*self._unspent(), held, *may_spend)) or 0))

    def _largest(
        self, db: Session, kind: ColumnElement[bool], own: ColumnElement[bool]
    ) -> list[tuple[ChainCoin, bool]]:
        query = (
            select(ChainCoin, own)
            .where(*self._unspent(), ~is_locked(), kind)
            .order_by(ChainCoin.amount_sats.desc(), ChainCoin.txid, ChainCoin.vout)
            .limit(MAX_INPUTS)
        )
        return [(coin, bool(is_own)) for coin, is_own in db.execute(query)]

    def _candidate(self, coin: ChainCoin, *, is_own: bool) -> Candidate:
        depth = 0 if coin.height is None else max(1, self.tip_height - coin.height + 1)
        return Candidate(coin.txid, coin.vout, Sats(coin.amount_sats), depth, is_own)

    def _unspent(self) -> tuple[ColumnElement[bool], ...]:
        matured = self.tip_height + 1 - COINBASE_MATURITY
        return (
            ChainCoin.chain == self.chain,
            ChainCoin.vault_id.is_(None),
            ChainCoin.script_pubkey.in_(self.scripts),
            ChainCoin.spent_by.is_(None),
            or_(ChainCoin.is_coinbase.is_(False), ChainCoin.height <= matured),
        )

    def _is_own_change(self) -> ColumnElement[bool]:
        """The change of a forward whose every coin is confirmed: a chain of unconfirmed deposits does not end with one of ours."""
        spent = aliased(ChainCoin)
        is_confirmed = exists().where(
            spent.chain == self.chain,
            spent.txid == ProposalInput.txid,
            spent.vout == ProposalInput.vout,
            spent.height.is_not(None),
        )
        chains_on = exists().where(ProposalInput.proposal_id == Proposal.id, ~is_confirmed)
        return and_(
            ChainCoin.branch == CHANGE,
            exists().where(
                Proposal.txid_expected == ChainCoin.txid, Proposal.profile_key_id.is_not(None), ~chains_on
            ),
        )
