"""A vault's coins: which may be spent, and locking the chosen ones.

Anyone can send coins to a vault, so it may have any number of them. A bounded number is read: the largest,
those about as large as the payment, and a few small ones.

Tokens need the coins at a vault's own ``address``: the first input of a token's transaction identifies the
caller (CPT-1).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import starmap
from typing import Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    text,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from custody.server.proposals.lifecycle import holds_coins_clause
from custody.server.requests.changes import OutdatedDraft
from custody.server.rules.selection import (
    FOREIGN_DEPTH,
    MAX_INPUTS,
    OWN_CHANGE_DEPTH,
    Plan,
    Tier,
    input_cost,
)
from custody.server.store.models import (
    MOVING,
    ChainCoinRow,
    ChainTransactionRow,
    CoinAsideRow,
    CoinLockRow,
    ContractRow,
    ProposalRow,
    TokenCellRow,
    TokenTransactionRow,
    VaultRow,
    table_of,
)
from custody.server.vaults import stored
from multisig import RECEIVE, CoinToSpend, OutPoint, Sats, Transaction, TxOut
from multisig.tokens.machine import Cell

_Coins = Select[str, int, int, int | None, int, int]
# Consensus: COINBASE_MATURITY.
COINBASE_MATURITY = 100
# The smallest coins that pay for everything alone: one of them may need no change.
MATCHING = 20
# Small coins worth more than twice their input's fee, to be used up with the others.
SMALL = 10
# The condition, in a statement over coins, that a proposal of the vault itself makes the coin. A forward
# counts as a deposit, so that no answer names its maker.
IS_MAKER = and_(
    ProposalRow.txid_expected == ChainCoinRow.txid,
    ProposalRow.vault_id == ChainCoinRow.vault_id,
    ProposalRow.profile_key_id.is_(None),
)
# A time at which whatever was ever set aside still is: where nothing says what the time is.
ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
# No address has this index: none is avoided.
NO_INDEX = -1


class Utxo(NamedTuple):
    """A coin with its height and derivation. It has a query's columns as they are: a draft chooses among some
    sixty, so nothing is derived before it is needed.
    """

    txid: str
    vout: int
    amount: Sats
    height: int | None
    branch: int
    address_index: int

    @property
    def outpoint(self) -> OutPoint:
        return OutPoint(self.txid, self.vout)


_UTXO = select(
    ChainCoinRow.txid,
    ChainCoinRow.vout,
    ChainCoinRow.amount_sats,
    ChainCoinRow.height,
    ChainCoinRow.branch,
    ChainCoinRow.address_index,
)


def utxo_of(coin: ChainCoinRow) -> Utxo:
    return Utxo(coin.txid, coin.vout, Sats(coin.amount_sats), coin.height, coin.branch, coin.address_index)


class Tally(NamedTuple):
    """Sums of unspent coins, each counted once: ``free`` may be spent, ``held`` are locked by proposals,
    ``waiting`` are unconfirmed deposits and immature coins, ``small`` are worth less than their input's fee,
    ``kept`` is the one that stays for the vault's tokens, ``aside`` are set aside, in no other sum, and so
    many ``coins_aside``.
    """

    free: int
    held: int
    waiting: int
    small: int
    kept: int
    aside: int
    coins_aside: int


@dataclass(frozen=True)
class SpendableCoins:
    """A vault's unspent, mature coins, at a tip. ``avoids_address``: without those at the vault's own
    ``address``. ``now``: those that are set aside until a later time are none of them.
    """

    vault_id: str
    tip_height: int
    avoids_address: bool = False
    now: datetime = ALWAYS

    def pool(self, db: Session, tier: Tier, plan: Plan, *, with_locked: bool = False) -> list[Utxo]:
        """Coins of the tier that suffice whenever all of them do, even if one is kept: the largest, and a few
        that a selection prefers. ``with_locked``: also coins that proposals have locked.
        """
        cost, count = input_cost(plan), MAX_INPUTS + 1
        largest = self._found(db, _by_amount(tier, count, with_locked=with_locked), cost + 1)
        if len(largest) < count or with_locked:
            return largest
        enough = max(cost + 1, plan.target + plan.fee(1, with_change=False))
        matching = self._found(db, _by_amount(tier, MATCHING, rising=True), enough)
        small = self._found(db, _by_amount(tier, SMALL, rising=True), 2 * cost + 1)
        # One snapshot: a coin that is found twice is the same row.
        return list(dict.fromkeys((*largest, *matching, *small)))

    def smallest(self, db: Session, plan: Plan, count: int) -> list[Utxo]:
        """Confirmed coins that are worth more than their input's fee, the smallest first."""
        return self._found(db, _by_amount(Tier.CONFIRMED, count, rising=True), input_cost(plan) + 1)

    def _found(self, db: Session, coins: _Coins, least: int) -> list[Utxo]:
        """Those of at least ``least`` sat."""
        return list(starmap(Utxo, db.execute(coins, {**self._values, "least": least})))

    def tally(self, db: Session, plan: Plan, kept: Utxo | None) -> Tally:
        """Sums at the plan's rate. Only waiting and small coins are read; the rest of the balance that no
        proposal has locked is free.
        """
        looked_at = db.execute(_tally(), {**self._values, "cost": input_cost(plan)})
        sums = {kind: (int(amount), coins) for kind, amount, coins in looked_at}
        (waiting, _), (small, _), aside = (sums.get(kind, (0, 0)) for kind in ("waiting", "small", "aside"))
        balance = stored.balances_of(db, [self.vault_id], self.now)[self.vault_id]
        stays = 0 if kept is None else int(kept.amount)
        if stays <= input_cost(plan):
            small -= stays
        free = balance.confirmed + balance.unconfirmed - balance.locked - waiting - small - stays - aside[0]
        return Tally(free, balance.locked, waiting, small, stays, *aside)

    @property
    def _values(self) -> dict[str, object]:
        """The parameters of the statements below."""
        depths = {"mature": COINBASE_MATURITY, "foreign": FOREIGN_DEPTH, "own": OWN_CHANGE_DEPTH}
        heights = {f"{name}_height": self.tip_height + 1 - depth for name, depth in depths.items()}
        avoided = 0 if self.avoids_address else NO_INDEX
        return {"vault_id": self.vault_id, "avoided": avoided, "now": self.now, **heights}


# Every draft runs some of these statements, so they are built once.
@cache
def _by_amount(tier: Tier, count: int, *, rising: bool = False, with_locked: bool = False) -> _Coins:
    query = _candidates(tier) if with_locked else _candidates(tier).where(~is_locked())
    amount = ChainCoinRow.amount_sats
    return query.order_by(amount if rising else amount.desc()).limit(count)


@cache
def _tally() -> Select[str, int, int]:
    """By kind, of coins that are unconfirmed, of a young reward, or not worth their cost: by indexes."""
    may_be_spent = and_(_is_mature(), _is_of(Tier.OWN_UNCONFIRMED))
    kind = case(
        (is_locked(), "held"),
        (_is_aside(), "aside"),
        (and_(may_be_spent, ChainCoinRow.amount_sats > bindparam("cost")), "free"),
        (may_be_spent, "small"),
        else_="waiting",
    ).label("kind")
    ours = ChainCoinRow.vault_id == bindparam("vault_id"), ChainCoinRow.spent_by.is_(None)
    each = select(kind, ChainCoinRow.amount_sats).where(*ours)
    confirmed, young = ChainCoinRow.height.is_not(None), ChainCoinRow.height > bindparam("mature_height")
    small = ChainCoinRow.amount_sats <= bindparam("cost")
    parts = union_all(
        each.where(ChainCoinRow.height.is_(None), text(MOVING)),
        each.where(young, ChainCoinRow.is_coinbase),
        each.where(confirmed, small, _is_mature()),
        # The rest of what is set aside, from its few rows: the vault of the coin would be another way in.
        select(kind, ChainCoinRow.amount_sats)
        .join(CoinAsideRow, stored.IS_ASIDE_OF_COIN)
        .where(CoinAsideRow.vault_id == bindparam("vault_id"), ChainCoinRow.spent_by.is_(None))
        .where(stored.lasts(), confirmed, ~small, _is_mature()),
    ).subquery()
    return select(parts.c.kind, func.sum(parts.c.amount_sats), func.count()).group_by(parts.c.kind)


def _candidates(tier: Tier) -> _Coins:
    """A `Utxo` for each coin of at least ``least`` sat."""
    return _UTXO.where(
        ChainCoinRow.vault_id == bindparam("vault_id"),
        ChainCoinRow.spent_by.is_(None),
        _is_mature(),
        or_(ChainCoinRow.branch != RECEIVE, ChainCoinRow.address_index != bindparam("avoided")),
        _is_of(tier),
        ~_is_aside(),
        ChainCoinRow.amount_sats >= bindparam("least"),
    )


def _is_mature() -> ColumnElement[bool]:
    return or_(ChainCoinRow.is_coinbase.is_(False), ChainCoinRow.height <= bindparam("mature_height"))


def _is_of(tier: Tier) -> ColumnElement[bool]:
    match tier:
        case Tier.DEEP:
            is_own = and_(ChainCoinRow.height <= bindparam("own_height"), _is_own_change())
            return or_(ChainCoinRow.height <= bindparam("foreign_height"), is_own)
        case Tier.CONFIRMED:
            return ChainCoinRow.height.is_not(None)
        case Tier.OWN_UNCONFIRMED:
            return or_(ChainCoinRow.height.is_not(None), _is_own_change())


def _is_own_change() -> ColumnElement[bool]:
    """Change of the vault's own proposals, as opposed to coins that others sent.

    A forward to the vault is a deposit: its maker could replace it while it is unconfirmed. Change of a
    replaced version does not count.
    """
    return _is_there(select(ProposalRow.id).where(IS_MAKER, ProposalRow.replaced_by_id.is_(None)))


def is_own_change(db: Session, coin: ChainCoinRow) -> bool:
    """Whether one coin of a vault is change of its own proposals."""
    one = ChainCoinRow.chain == coin.chain, ChainCoinRow.txid == coin.txid, ChainCoinRow.vout == coin.vout
    return bool(db.scalar(select(_is_own_change()).where(*one)))


def is_locked() -> ColumnElement[bool]:
    """The condition, in a statement over coins, that a proposal holds the coin."""
    return _is_there(select(CoinLockRow.family_id).where(stored.IS_LOCK_OF_COIN))


def _is_aside() -> ColumnElement[bool]:
    """The condition, in a statement over coins, that the coin is set aside at the time ``now``."""
    aside = select(CoinAsideRow.vault_id).where(stored.IS_ASIDE_OF_COIN, stored.lasts())
    return _is_there(aside.correlate(ChainCoinRow))


def _is_there(query: Select[str]) -> ColumnElement[bool]:
    """EXISTS as a lookup for each coin: PostgreSQL would otherwise hash the whole inner table.

    COALESCE makes the planner estimate that half of the coins pass. For IS NULL it would estimate one in two
    hundred, and sort all of a vault's coins instead of walking an index until there are enough.
    """
    exists = query.with_only_columns(true()).limit(1).scalar_subquery()
    return func.coalesce(exists, false())


_LOCKS = table_of(CoinLockRow)
_MOVED = "A chosen coin was spent, locked or moved in the chain."


def require_unchanged(db: Session, chain: str, chosen: Sequence[Utxo], now: datetime = ALWAYS) -> None:
    """Checks that every coin is still unspent, not locked, not set aside, and at the same height. Raises
    Outdated.
    """
    if len(db.execute(_unchanged(chain, chosen), {"now": now}).all()) != len(chosen):
        raise OutdatedDraft(_MOVED)


def lock_coins(
    db: Session, chain: str, chosen: Sequence[Utxo], family_id: str, now: datetime = ALWAYS
) -> None:
    """Locks all or none of the coins that `require_unchanged` accepts. Raises Outdated."""
    locks = _unchanged(chain, chosen).add_columns(
        ChainCoinRow.chain, literal(family_id), ChainCoinRow.vault_id, ChainCoinRow.amount_sats
    )
    columns = ["txid", "vout", "chain", "family_id", "vault_id", "held_sats"]
    locking = insert(_LOCKS).from_select(columns, locks).returning(_LOCKS.c.txid)
    if len(db.execute(locking, {"now": now}).all()) != len(chosen):
        raise OutdatedDraft(_MOVED)


def _unchanged(chain: str, chosen: Sequence[Utxo]) -> Select[str, int]:
    # SQLite uses no index for a list of tuples.
    places = (
        and_(
            ChainCoinRow.chain == chain,
            ChainCoinRow.txid == utxo.txid,
            ChainCoinRow.vout == utxo.vout,
            ChainCoinRow.height.is_not_distinct_from(utxo.height),
        )
        for utxo in chosen
    )
    query = select(ChainCoinRow.txid, ChainCoinRow.vout)
    return query.where(or_(false(), *places), ChainCoinRow.spent_by.is_(None), ~is_locked(), ~_is_aside())


def require_makers_stay(db: Session, chosen: Iterable[Utxo]) -> None:
    """Raises Outdated where one of the coins is unconfirmed change of a payment that is being replaced."""
    makers = sorted({utxo.txid for utxo in chosen if utxo.height is None})
    if not makers:
        return
    query = select(ProposalRow.id).where(
        ProposalRow.txid_expected.in_(makers), ProposalRow.replaced_by_id.is_not(None)
    )
    if db.scalars(query).first() is not None:
        raise OutdatedDraft("A payment whose change was chosen is being replaced.")


def coins_to_spend(db: Session, chain: str, chosen: Sequence[Utxo]) -> list[CoinToSpend]:
    """The chosen coins with their derivation and the transactions that made them."""
    txids = sorted({utxo.txid for utxo in chosen})
    rows = db.execute(_RAW, {"chain": chain, "txids": txids})
    previous = {txid: Transaction.parse(raw) for txid, raw in rows}
    return [
        CoinToSpend(
            outpoint=utxo.outpoint,
            amount=utxo.amount,
            chain=utxo.branch,
            index=utxo.address_index,
            previous_transaction=previous[utxo.txid],
        )
        for utxo in chosen
    ]


def size_of_previous(db: Session, chain: str, chosen: Sequence[Utxo]) -> int:
    """The bytes of the previous transactions in a PSBT: once for each coin."""
    coins = Counter(utxo.txid for utxo in chosen)
    rows = db.execute(_SIZES, {"chain": chain, "txids": sorted(coins)})
    return sum(size * coins[txid] for txid, size in rows)


_RAW = select(ChainTransactionRow.txid, ChainTransactionRow.raw).where(
    ChainTransactionRow.chain == bindparam("chain"),
    ChainTransactionRow.txid.in_(bindparam("txids", expanding=True)),
)


_SIZES = _RAW.with_only_columns(ChainTransactionRow.txid, func.length(ChainTransactionRow.raw))


# A call of 250 vB at 40 sat/vB. A coin below it is kept only where there is no larger one.
WORTH_KEEPING = Sats(10_000)


def token_coins(
    db: Session, vault: VaultRow, tip_height: int, now: datetime = ALWAYS, *, locked: bool = False
) -> list[Utxo]:
    """Confirmed, mature coins at the vault's address that are not set aside, the largest first: those that no
    proposal has locked, or with ``locked`` the others.
    """
    values = {"vault_id": vault.id, "mature_height": tip_height + 1 - COINBASE_MATURITY, "now": now}
    rows = db.execute(_AT_ADDRESS, values)
    return [Utxo(*coin) for *coin, is_held in rows if bool(is_held) is locked]


def awaited_token_coins(db: Session, vault: VaultRow, least: Sats) -> Sequence[str | None]:
    """For an unconfirmed coin at the vault's address of at least ``least`` sat that is not locked: the
    vault's own proposal that makes it, which is preferred, or None for a deposit, which others could replace.
    """
    return db.scalars(_AWAITED, {"vault_id": vault.id, "least": least}).all()


def kept_for_tokens(
    db: Session, vault: VaultRow, tip_height: int, outputs: Iterable[TxOut] = (), now: datetime = ALWAYS
) -> Utxo | None:
    """The coin that a send leaves at the vault's address where tokens need one: the smallest that pays for a
    call, else the largest. None where the send itself pays that address.
    """
    if not has_tokens(db, vault):
        return None
    own = stored.address_script(vault)
    if any(output.script_pubkey == own for output in outputs):
        return None
    coins = token_coins(db, vault, tip_height, now)
    enough = [utxo for utxo in coins if utxo.amount >= WORTH_KEEPING]
    return next(iter(enough[-1:] or coins), None)


def has_tokens(db: Session, vault: VaultRow) -> bool:
    """Whether the vault owns or holds a token of its workspace, or has one under way. Tokens that strangers
    send do not count.
    """
    values = {
        "vault_id": vault.id,
        "workspace_id": vault.workspace_id,
        "chain": vault.chain,
        "script": stored.address_script(vault),
    }
    return bool(db.scalar(_HAS_TOKENS, values))


_UNSPENT_AT_ADDRESS = (
    ChainCoinRow.vault_id == bindparam("vault_id"),
    ChainCoinRow.branch == literal_column(str(RECEIVE)),
    ChainCoinRow.address_index == stored.ADDRESS_INDEX,
    ChainCoinRow.spent_by.is_(None),
)
_AT_ADDRESS = (
    _UTXO.add_columns(is_locked().label("is_locked"))
    .where(*_UNSPENT_AT_ADDRESS, ChainCoinRow.height.is_not(None), _is_mature(), ~_is_aside())
    .order_by(ChainCoinRow.amount_sats.desc(), ChainCoinRow.txid, ChainCoinRow.vout)
    # Bounded, for anyone can send any number of coins to the address.
    .limit(2 * MAX_INPUTS)
)
_AWAITED = (
    select(ProposalRow.id)
    .select_from(ChainCoinRow)
    .outerjoin(ProposalRow, IS_MAKER)
    .where(
        *_UNSPENT_AT_ADDRESS,
        ChainCoinRow.height.is_(None),
        ChainCoinRow.amount_sats >= bindparam("least"),
        ~is_locked(),
    )
    .order_by(ProposalRow.id.is_(None), ChainCoinRow.amount_sats.desc())
    .limit(1)
)


def _any_token() -> Select[bool]:
    # Looked up from the workspace's own tokens: anyone can send the vault any number of other tokens.
    of_workspace = (
        select(ProposalRow.txid_expected)
        .join(ContractRow, ContractRow.deploy_family_id == ProposalRow.family_id)
        .where(ContractRow.workspace_id == bindparam("workspace_id"), ContractRow.chain == bindparam("chain"))
    )
    cell = exists().where(
        TokenCellRow.chain == bindparam("chain"), TokenCellRow.contract_id.in_(of_workspace)
    )
    holds = cell.where(TokenCellRow.cell == int(Cell.BALANCE), TokenCellRow.holder == bindparam("script"))
    owns = cell.where(
        TokenCellRow.cell == int(Cell.OWNER),
        TokenCellRow.holder == b"",
        TokenCellRow.data == bindparam("script"),
    )
    # Of a deployment that the index of tokens has not read nobody is the owner yet.
    is_read = exists().where(
        TokenTransactionRow.chain == bindparam("chain"), TokenTransactionRow.txid == ProposalRow.txid
    )
    is_under_way = ProposalRow.family_id == ContractRow.deploy_family_id, holds_coins_clause(), ~is_read
    makes = exists().where(ContractRow.vault_id == bindparam("vault_id"), *is_under_way)
    return select(or_(makes, holds, owns))


_HAS_TOKENS = _any_token()
