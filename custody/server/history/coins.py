"""A vault's unspent coins with their states, as pages, the largest first.

Anyone can send a vault any number of coins: a page reads at most `WINDOW` of them.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, and_, select
from sqlalchemy.orm import Session

from custody.schemas import history as wire
from custody.schemas.history import VAULT_COINS, CoinState
from custody.server.calls import Ctx, serves
from custody.server.history.records import tip_height
from custody.server.proposals.coins import COINBASE_MATURITY, IS_MAKER
from custody.server.proposals.payments import read_script
from custody.server.shown import apart, shape_of, shown
from custody.server.store.models import ChainCoinRow, CoinLockRow, ProposalRow, VaultRow
from custody.server.store.store import going_on
from custody.server.vaults.stored import IS_LOCK_OF_COIN, vault_in
from multisig import CHANGE, Network, encode_address

WINDOW: Final = 2_000


@serves(VAULT_COINS)
def vault_coins(ctx: Ctx, query: wire.VaultCoinsQuery) -> wire.VaultCoins:
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    rows = ctx.db.execute(_wanted(vault, query)).all()
    tip = tip_height(ctx.db, vault.chain)
    matching = [row for row in rows if query.state in {None, _state(row, tip)}]
    page = matching[: query.limit]
    last = None
    if len(matching) > len(page):
        last = page[-1]
    elif len(rows) == _rows_to_read(query):
        last = rows[-1]
    coins, unreadable = apart(
        shown(
            page,
            lambda some: _records(ctx.db, vault, some, tip),
            "outpoint",
            lambda row: f"{row.txid}:{row.vout}",
        )
    )
    return wire.VaultCoins(
        vault_id=vault.id,
        tip_height=tip,
        is_frozen=vault.frozen_at is not None,
        coins=coins,
        unreadable=unreadable,
        next_cursor=None if last is None else f"{last.amount_sats}_{last.txid}_{last.vout}",
    )


def _rows_to_read(query: wire.VaultCoinsQuery) -> int:
    """A state is computed row by row; indexes serve all other filters."""
    return query.limit + 1 if query.state is None else WINDOW


def _wanted(vault: VaultRow, query: wire.VaultCoinsQuery) -> Select[*tuple[Any, ...]]:
    coins = _unspent(vault)
    if query.min_sats is not None:
        coins = coins.where(ChainCoinRow.amount_sats >= query.min_sats)
    if query.max_sats is not None:
        coins = coins.where(ChainCoinRow.amount_sats <= query.max_sats)
    if query.address is not None:
        script = read_script(query.address, Network(vault.chain), "/address")
        coins = coins.where(ChainCoinRow.script_pubkey == script)
    keys = (ChainCoinRow.amount_sats, ChainCoinRow.txid, ChainCoinRow.vout)
    after = None
    if query.cursor is not None:
        amount, txid, vout = query.cursor.split("_")
        after = int(amount), txid, int(vout)
    return going_on(coins, keys, after, newest=True).limit(_rows_to_read(query))


def _unspent(vault: VaultRow) -> Select[*tuple[Any, ...]]:
    """Unspent coins with the family that locks each, and the vault's own proposal that created it."""
    return (
        select(
            ChainCoinRow.txid,
            ChainCoinRow.vout,
            ChainCoinRow.amount_sats,
            ChainCoinRow.script_pubkey,
            ChainCoinRow.branch,
            ChainCoinRow.height,
            ChainCoinRow.is_coinbase,
            ChainCoinRow.first_seen_at,
            CoinLockRow.family_id,
            ProposalRow.id.label("maker_id"),
        )
        .outerjoin(CoinLockRow, IS_LOCK_OF_COIN)
        .outerjoin(ProposalRow, and_(IS_MAKER, ProposalRow.replaced_by_id.is_(None)))
        .where(
            ChainCoinRow.chain == vault.chain,
            ChainCoinRow.vault_id == vault.id,
            ChainCoinRow.spent_by.is_(None),
        )
    )


def _state(row: Row[Any], tip: int) -> CoinState:
    """Agrees with `proposals.coins`: it may select a coin that is SPENDABLE here."""
    if row.family_id is not None:
        return CoinState.RESERVED
    if row.height is None:
        return CoinState.UNCONFIRMED if row.maker_id is None else CoinState.SPENDABLE
    if row.is_coinbase and row.height > tip + 1 - COINBASE_MATURITY:
        return CoinState.IMMATURE
    return CoinState.SPENDABLE


def _records(db: Session, vault: VaultRow, rows: Sequence[Row[Any]], tip: int) -> list[wire.VaultCoin]:
    holders = _holders(db, {row.family_id for row in rows if row.family_id is not None})
    return [
        shape_of(
            wire.VaultCoin,
            row,
            address=encode_address(row.script_pubkey, Network(vault.chain)) or "",
            is_change=row.branch == CHANGE,
            confirmations=0 if row.height is None else max(1, tip - row.height + 1),
            state=_state(row, tip),
            psbt_id=holders.get(row.family_id, row.family_id),
        )
        for row in rows
    ]


def _holders(db: Session, family_ids: Collection[str]) -> dict[str, str]:
    """The newest version's id, by family."""
    query = select(ProposalRow.family_id, ProposalRow.id).where(
        ProposalRow.family_id.in_(family_ids), ProposalRow.replaced_by_id.is_(None)
    )
    rows = db.execute(query.order_by(ProposalRow.created_at, ProposalRow.id))
    return {family_id: proposal_id for family_id, proposal_id in rows}  # noqa: C416 - a row is no pair to mypy
