"""A vault's coins: which may be spent, and locking the chosen ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from custody.server.domain.errors import LockedFunds
from custody.server.domain.selection import Candidate
from custody.server.store.models import ChainCoin, ChainTransaction, CoinLock, Proposal, Vault
from multisig import CoinToSpend, OutPoint, Sats, Transaction

# Consensus: COINBASE_MATURITY.
COINBASE_MATURITY = 100


@dataclass(frozen=True)
class Purse:
    """A vault's spendable coins, those that no proposal holds and those that one does."""

    free: tuple[Candidate, ...]
    locked: tuple[Candidate, ...]
    places: dict[OutPoint, ChainCoin]


def purse_of(db: Session, vault: Vault, tip_height: int) -> Purse:
    """Every unspent, mature coin. Change of our own making is told from coins that others sent."""
    lock = and_(
        CoinLock.chain == ChainCoin.chain, CoinLock.txid == ChainCoin.txid, CoinLock.vout == ChainCoin.vout
    )
    query = (
        select(ChainCoin, CoinLock.family_id)
        .outerjoin(CoinLock, lock)
        .where(ChainCoin.vault_id == vault.id, ChainCoin.spent_by.is_(None))
    )
    rows = [(coin, family) for coin, family in db.execute(query) if _is_mature(coin, tip_height)]
    ours = _made_by_us(db, vault, {coin.txid for coin, _ in rows})
    pairs = [(_candidate(coin, tip_height, ours), family) for coin, family in rows]
    return Purse(
        free=tuple(candidate for candidate, family in pairs if family is None),
        locked=tuple(candidate for candidate, family in pairs if family is not None),
        places={OutPoint(coin.txid, coin.vout): coin for coin, _ in rows},
    )


def _made_by_us(db: Session, vault: Vault, txids: set[str]) -> set[str]:
    query = select(Proposal.txid_expected).where(
        Proposal.vault_id == vault.id, Proposal.txid_expected.in_(txids)
    )
    return set(db.scalars(query))


def _is_mature(coin: ChainCoin, tip_height: int) -> bool:
    return not coin.is_coinbase or (
        coin.height is not None and tip_height + 1 - coin.height >= COINBASE_MATURITY
    )


def _candidate(coin: ChainCoin, tip_height: int, ours: set[str]) -> Candidate:
    return Candidate(
        outpoint=OutPoint(coin.txid, coin.vout),
        amount=Sats(coin.amount_sats),
        confirmations=0 if coin.height is None else max(1, tip_height - coin.height + 1),
        own_change=coin.txid in ours,
    )


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


def coins_to_spend(db: Session, vault: Vault, purse: Purse, chosen: Sequence[Candidate]) -> list[CoinToSpend]:
    """The chosen coins with their places in the vault and the transactions that made them."""
    txids = {candidate.outpoint.txid for candidate in chosen}
    query = select(ChainTransaction).where(
        ChainTransaction.chain == vault.chain, ChainTransaction.txid.in_(txids)
    )
    previous = {row.txid: Transaction.parse(row.raw) for row in db.scalars(query)}
    return [
        CoinToSpend(
            outpoint=candidate.outpoint,
            amount=candidate.amount,
            chain=purse.places[candidate.outpoint].branch,
            index=purse.places[candidate.outpoint].address_index,
            previous_transaction=previous[candidate.outpoint.txid],
        )
        for candidate in chosen
    ]
