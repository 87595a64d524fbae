"""A vault's coins: which may be spent, and locking the chosen ones.

A vault may hold any number of coins, for anybody may send some. What is read of them is bounded: a selection needs the largest,
those about as large as what is paid, and a few small ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from custody.server.domain.errors import LockedFunds
from custody.server.domain.selection import (
    FOREIGN_DEPTH,
    MAX_INPUTS,
    OWN_CHANGE_DEPTH,
    Candidate,
    Plan,
    Tier,
    input_cost,
)
from custody.server.service.requests.outdated import Outdated
from custody.server.store.models import ChainCoin, ChainTransaction, CoinLock, Proposal
from multisig import CoinToSpend, OutPoint, Sats, Transaction

# Consensus: COINBASE_MATURITY.
COINBASE_MATURITY = 100
# Coins that alone pay for everything, the smallest of them: one may do without change.
MATCHING = 20
# Small coins that are worth twice what they cost, to be used up beside the others.
SMALL = 10


@dataclass(frozen=True)
class Holding:
    """A candidate, where in the vault it is, and at which height it was seen."""

    candidate: Candidate
    branch: int
    address_index: int
    height: int | None

    @property
    def outpoint(self) -> OutPoint:
        return self.candidate.outpoint


@dataclass(frozen=True, eq=False)
class Purse:
    """Unspent, mature coins, at a tip. ``whose`` says which coins; ``makers`` which proposals make change of our own, that is
    told from coins that others sent.
    """

    whose: ColumnElement[bool]
    makers: ColumnElement[bool]
    tip_height: int

    @classmethod
    def of_vault(cls, vault_id: str, tip_height: int) -> Self:
        # What a member forwards into it is a deposit like any other's: its maker could take it back while it waits.
        # Change that a newer version of its payment would do away with is nothing to build upon.
        makers = and_(
            Proposal.vault_id == vault_id,
            Proposal.profile_key_id.is_(None),
            Proposal.replaced_by_id.is_(None),
        )
        return cls(ChainCoin.vault_id == vault_id, makers, tip_height)

    def pool(self, db: Session, tier: Tier, plan: Plan, *, with_locked: bool = False) -> list[Holding]:
        """Coins of the tier from which a selection can be made whenever it can be made from all of them.

        ``with_locked``: also of those that proposals hold.
        """
        cost = input_cost(plan)
        may_spend = [ChainCoin.amount_sats > cost, self._is_of(tier)]
        if not with_locked:
            may_spend.append(~_is_locked())
        query = self._candidates().where(*may_spend)
        largest = self._read(db, query.order_by(ChainCoin.amount_sats.desc()).limit(MAX_INPUTS))
        if len(largest) < MAX_INPUTS or with_locked:
            return largest
        upwards = query.order_by(ChainCoin.amount_sats)
        enough = plan.target + plan.fee(1, with_change=False)
        others = (
            *self._read(db, upwards.where(ChainCoin.amount_sats >= enough).limit(MATCHING)),
            *self._read(db, upwards.where(ChainCoin.amount_sats > 2 * cost).limit(SMALL)),
        )
        return list({holding.outpoint: holding for holding in (*largest, *others)}.values())

    def spendable(self, db: Session) -> Sats:
        """What all coins come to that may be spent and that no proposal holds."""
        total = select(func.coalesce(func.sum(ChainCoin.amount_sats), 0)).where(
            *self._unspent(), self._is_of(Tier.OWN_UNCONFIRMED), ~_is_locked()
        )
        return Sats(int(db.scalar(total) or 0))

    def _candidates(self) -> Select[str, int, int, int | None, int, int, bool]:
        return select(
            ChainCoin.txid,
            ChainCoin.vout,
            ChainCoin.amount_sats,
            ChainCoin.height,
            ChainCoin.branch,
            ChainCoin.address_index,
            self._is_own_change(),
        ).where(*self._unspent())

    def _unspent(self) -> tuple[ColumnElement[bool], ...]:
        matured = self.tip_height + 1 - COINBASE_MATURITY
        return (
            self.whose,
            ChainCoin.spent_by.is_(None),
            or_(ChainCoin.is_coinbase.is_(False), ChainCoin.height <= matured),
        )

    def _is_of(self, tier: Tier) -> ColumnElement[bool]:
        """As `Tier.holds`, for the database."""
        match tier:
            case Tier.DEEP:
                foreign, own = (self.tip_height + 1 - depth for depth in (FOREIGN_DEPTH, OWN_CHANGE_DEPTH))
                is_own = and_(ChainCoin.height <= own, self._is_own_change())
                return or_(ChainCoin.height <= foreign, is_own)
            case Tier.CONFIRMED:
                return ChainCoin.height.is_not(None)
            case Tier.OWN_UNCONFIRMED:
                return or_(ChainCoin.height.is_not(None), self._is_own_change())

    def _is_own_change(self) -> ColumnElement[bool]:
        return _is_there(select(Proposal.id).where(Proposal.txid_expected == ChainCoin.txid, self.makers))

    def _read(self, db: Session, query: Select[str, int, int, int | None, int, int, bool]) -> list[Holding]:
        return [
            Holding(
                Candidate(OutPoint(txid, vout), Sats(amount), self._confirmations(height), bool(is_own)),
                branch,
                address_index,
                height,
            )
            for txid, vout, amount, height, branch, address_index, is_own in db.execute(query)
        ]

    def _confirmations(self, height: int | None) -> int:
        return 0 if height is None else max(1, self.tip_height - height + 1)


def _is_locked() -> ColumnElement[bool]:
    return _is_there(
        select(CoinLock.family_id).where(
            CoinLock.chain == ChainCoin.chain,
            CoinLock.txid == ChainCoin.txid,
            CoinLock.vout == ChainCoin.vout,
        )
    )


def _is_there(query: Select[str]) -> ColumnElement[bool]:
    """As EXISTS, but asked for each coin that is looked at: PostgreSQL would read all of what there is into a hash first."""
    return query.limit(1).scalar_subquery().is_not(None)


def require_unchanged(db: Session, chain: str, chosen: Iterable[Holding]) -> None:
    """In the transaction that locks them: whether every coin is still unspent, free, and where it was in the chain.

    Raises Outdated.
    """
    seen = {(holding.outpoint.txid, holding.outpoint.vout, holding.height) for holding in chosen}
    # SQLite finds a list of tuples by no index.
    places = (
        and_(ChainCoin.chain == chain, ChainCoin.txid == txid, ChainCoin.vout == vout)
        for txid, vout, _ in seen
    )
    query = select(ChainCoin.txid, ChainCoin.vout, ChainCoin.height).where(
        or_(*places),
        ChainCoin.spent_by.is_(None),
        ~_is_locked(),
    )
    if {tuple(row) for row in db.execute(query)} != seen:
        raise Outdated("A chosen coin was spent, locked or moved in the chain.")


def require_makers_stay(db: Session, chosen: Iterable[Holding]) -> None:
    """No unconfirmed change of ours among them whose payment is about to be replaced, and the change with it.

    Raises Outdated.
    """
    makers = sorted({holding.outpoint.txid for holding in chosen if holding.height is None})
    if not makers:
        return
    query = select(Proposal.id).where(
        Proposal.txid_expected.in_(makers), Proposal.replaced_by_id.is_not(None)
    )
    if db.scalars(query).first() is not None:
        raise Outdated("A payment whose change was chosen is being replaced.")


def lock_coins(db: Session, chain: str, outpoints: Sequence[OutPoint], family_id: str) -> None:
    """All of them or none. Raises LockedFunds where another family holds one: the database decides (P16)."""
    db.add_all(
        CoinLock(chain=chain, txid=outpoint.txid, vout=outpoint.vout, family_id=family_id)
        for outpoint in outpoints
    )
    try:
        db.flush()
    except IntegrityError as error:
        raise LockedFunds("Another proposal took one of the coins at the same moment.") from error


def coins_to_spend(db: Session, chain: str, chosen: Sequence[Holding]) -> list[CoinToSpend]:
    """The chosen coins with their places in the wallet and the transactions that made them."""
    previous = _previous_transactions(db, chain, {holding.outpoint.txid for holding in chosen})
    return [
        CoinToSpend(
            outpoint=holding.outpoint,
            amount=holding.candidate.amount,
            chain=holding.branch,
            index=holding.address_index,
            previous_transaction=previous[holding.outpoint.txid],
        )
        for holding in chosen
    ]


def _previous_transactions(db: Session, chain: str, txids: set[str]) -> Mapping[str, Transaction]:
    query = select(ChainTransaction).where(
        ChainTransaction.chain == chain, ChainTransaction.txid.in_(sorted(txids))
    )
    return {row.txid: Transaction.parse(row.raw) for row in db.scalars(query)}
