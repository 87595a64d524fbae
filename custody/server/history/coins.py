"""A vault's unspent coins with their states, as pages, the largest first.

Anyone can send a vault any number of coins: a page reads at most `WINDOW` of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, and_, delete, func, select

from custody.common.text import minute
from custody.schemas import history as wire
from custody.schemas.common import Done
from custody.schemas.history import RELEASE_COIN, SET_COIN_ASIDE, VAULT_COINS, CoinState
from custody.server.calls import Ctx, serves
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.history.records import tip_height
from custody.server.people.names import names_of
from custody.server.proposals.coins import COINBASE_MATURITY, IS_MAKER, kept_for_tokens
from custody.server.proposals.payments import read_script
from custody.server.proposals.seeing import holders
from custody.server.rules.audit import Category, Event
from custody.server.shown import apart, shape_of, shown
from custody.server.store.models import (
    ChainCoinRow,
    CoinAsideRow,
    CoinLockRow,
    ProposalRow,
    VaultRow,
    table_of,
)
from custody.server.store.store import going_on
from custody.server.vaults.stored import ADDRESS_INDEX, IS_ASIDE_OF_COIN, IS_LOCK_OF_COIN, lasts, vault_in
from multisig import CHANGE, RECEIVE, Network, encode_address

WINDOW: Final = 2_000
# Of one vault, set aside at a time.
MAX_ASIDE: Final = 1_000
ASIDE = Event(
    "COIN_SET_ASIDE",
    "set aside the coin {coin} of the vault {vault}[ until {until}]: {reason}",
    Category.VAULTS,
)
RELEASED = Event("COIN_RELEASED", "released the coin {coin} of the vault {vault}", Category.VAULTS)


@serves(VAULT_COINS)
def vault_coins(ctx: Ctx, query: wire.VaultCoinsQuery) -> wire.VaultCoins:
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    rows = ctx.db.execute(_wanted(ctx, vault, query)).all()
    state_of = _states(ctx, vault, rows)
    matching = [row for row in rows if query.state in {None, CoinState.SET_ASIDE, state_of(row)}]
    page = matching[: query.limit]
    last = None
    if len(matching) > len(page):
        last = page[-1]
    elif len(rows) == _rows_to_read(query):
        last = rows[-1]
    tip = tip_height(ctx.db, vault.chain)
    coins, unreadable = apart(
        shown(
            page,
            lambda some: _records(ctx, vault, some, tip, state_of),
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
    """A state is computed row by row; indexes serve all other filters, and what is set aside."""
    return query.limit + 1 if query.state in {None, CoinState.SET_ASIDE} else WINDOW


@serves(SET_COIN_ASIDE)
def set_coin_aside(ctx: Ctx, request: wire.SetCoinAsideRequest) -> Done:
    """Raises NotFound, Invalid (a coin that the vault does not hold; a time that is past), StateConflict."""
    vault, place = vault_in(ctx.db, ctx.access, request.vault_id), _place(ctx, request.coin)
    coin = ctx.db.get(ChainCoinRow, place)
    if coin is None or coin.vault_id != vault.id or coin.spent_by is not None:
        raise Invalid.at("/coin", f"{request.coin} is no coin that this vault holds.")
    if request.until is not None and request.until <= ctx.now:
        raise Invalid.at("/until", "This time is past: give a later one, or none.")
    row, ours = ctx.db.get(CoinAsideRow, place), CoinAsideRow.vault_id == vault.id
    if row is None:
        ctx.db.execute(delete(CoinAsideRow).where(ours, CoinAsideRow.until <= ctx.now))
        holds = select(func.count()).select_from(ChainCoinRow).join(CoinAsideRow, IS_ASIDE_OF_COIN)
        if (ctx.db.scalar(holds.where(ours, ChainCoinRow.spent_by.is_(None))) or 0) >= MAX_ASIDE:
            raise StateConflict(f"{MAX_ASIDE} coins of this vault are set aside, the most: release some.")
        chain, txid, vout = place
        row = CoinAsideRow(chain=chain, txid=txid, vout=vout, vault_id=vault.id)
        ctx.db.add(row)
    row.reason, row.until, row.set_by, row.set_at = request.reason, request.until, ctx.caller.user_id, ctx.now
    until = None if request.until is None else minute(request.until)
    return _changed(ctx, ASIDE, vault, coin=request.coin, until=until, reason=request.reason)


@serves(RELEASE_COIN)
def release_coin(ctx: Ctx, request: wire.ReleaseCoinRequest) -> Done:
    """Raises NotFound (the vault; a coin that is not set aside)."""
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    row = ctx.db.get(CoinAsideRow, _place(ctx, request.coin))
    if row is None or row.vault_id != vault.id:
        raise NotFound("This coin of the vault is not set aside.")
    ctx.db.delete(row)
    return _changed(ctx, RELEASED, vault, coin=request.coin)


def _place(ctx: Ctx, coin: str) -> tuple[str, str, int]:
    txid, _, vout = coin.partition(":")
    return ctx.access.chain, txid, int(vout)


def _changed(ctx: Ctx, event: Event, vault: VaultRow, **facts: str | None) -> Done:
    ctx.db.flush()
    ctx.event(event, vault=vault.id, **facts)
    ctx.tools.changes.moved(ctx.db, vault.workspace_id)
    return Done()


def _wanted(ctx: Ctx, vault: VaultRow, query: wire.VaultCoinsQuery) -> Select[*tuple[Any, ...]]:
    coins = _unspent(vault).outerjoin(CoinAsideRow, and_(IS_ASIDE_OF_COIN, lasts(ctx.now)))
    if query.min_sats is not None:
        coins = coins.where(ChainCoinRow.amount_sats >= query.min_sats)
    if query.max_sats is not None:
        coins = coins.where(ChainCoinRow.amount_sats <= query.max_sats)
    if query.address is not None:
        script = read_script(query.address, Network(vault.chain), "/address")
        coins = coins.where(ChainCoinRow.script_pubkey == script)
    if query.state is CoinState.SET_ASIDE:
        # Whatever else holds them.
        coins = coins.where(CoinAsideRow.set_at.is_not(None))
    if query.coin is not None:
        _, txid, vout = _place(ctx, query.coin)
        coins = coins.where(ChainCoinRow.txid == txid, ChainCoinRow.vout == vout)
    keys = (ChainCoinRow.amount_sats, ChainCoinRow.txid, ChainCoinRow.vout)
    after = None
    if query.cursor is not None:
        amount, last, nth = query.cursor.split("_")
        after = int(amount), last, int(nth)
    return going_on(coins, keys, after, newest=True).limit(_rows_to_read(query))


def _unspent(vault: VaultRow) -> Select[*tuple[Any, ...]]:
    """Unspent coins with the family that locks each, and the vault's own proposal that created it."""
    return (
        select(
            *table_of(ChainCoinRow).c,
            CoinLockRow.family_id,
            ProposalRow.id.label("maker_id"),
            CoinAsideRow.reason,
            CoinAsideRow.until,
            CoinAsideRow.set_by,
            CoinAsideRow.set_at,
        )
        .outerjoin(CoinLockRow, IS_LOCK_OF_COIN)
        .outerjoin(ProposalRow, and_(IS_MAKER, ProposalRow.replaced_by_id.is_(None)))
        .where(
            ChainCoinRow.chain == vault.chain,
            ChainCoinRow.vault_id == vault.id,
            ChainCoinRow.spent_by.is_(None),
        )
    )


def _states(ctx: Ctx, vault: VaultRow, rows: Sequence[Row[Any]]) -> Callable[[Row[Any]], CoinState]:
    """The state of each row. The coin that is kept is read where one of them may be it."""
    tip, kept = tip_height(ctx.db, vault.chain), None
    at_address = (row for row in rows if (row.branch, row.address_index) == (RECEIVE, ADDRESS_INDEX))
    if any(_state(row, tip) is CoinState.SPENDABLE for row in at_address):
        kept = kept_for_tokens(ctx.db, vault, tip, now=ctx.now)
    place = None if kept is None else (kept.txid, kept.vout)
    return lambda row: CoinState.KEPT if (row.txid, row.vout) == place else _state(row, tip)


def _state(row: Row[Any], tip: int) -> CoinState:
    """Agrees with `proposals.coins`: it may select a coin that is SPENDABLE here."""
    if row.family_id is not None:
        return CoinState.LOCKED
    if row.set_at is not None:
        return CoinState.SET_ASIDE
    if row.height is None:
        return CoinState.UNCONFIRMED if row.maker_id is None else CoinState.SPENDABLE
    if row.is_coinbase and row.height > tip + 1 - COINBASE_MATURITY:
        return CoinState.IMMATURE
    return CoinState.SPENDABLE


def _records(
    ctx: Ctx, vault: VaultRow, rows: Sequence[Row[Any]], tip: int, state_of: Callable[[Row[Any]], CoinState]
) -> list[wire.VaultCoin]:
    held_by = holders(ctx, {row.family_id for row in rows if row.family_id is not None})
    names = names_of(ctx.db, ctx.access, {row.set_by for row in rows if row.set_by is not None})
    return [
        shape_of(
            wire.VaultCoin,
            row,
            address=encode_address(row.script_pubkey, Network(vault.chain)) or "",
            is_change=row.branch == CHANGE,
            confirmations=0 if row.height is None else max(1, tip - row.height + 1),
            state=state_of(row),
            psbt_id=None if row.family_id not in held_by else held_by[row.family_id].id,
            set_aside=shape_of(wire.SetAside, row, set_by_name=names.get(row.set_by)) if row.set_at else None,
        )
        for row in rows
    ]
