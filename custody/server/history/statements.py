"""A closed month of a vault: the balance before it, its movements, the balance after it.

A month begins for a vault with the first block, by height, that holds a movement of it and says, in its
header, a time in that month or later. Blocks' times may run back by an hour or two; whatever is in a later
block is in the same month or a later one, so months follow each other without a gap, and each balance is that
of the chain at one height.
"""

from datetime import UTC, datetime
from statistics import median_high
from typing import Final

from sqlalchemy import and_, func, select, tuple_
from sqlalchemy.orm import Session

from custody.schemas import history as wire
from custody.schemas.history import VAULT_STATEMENT
from custody.server.calls import Ctx, serves
from custody.server.chain.backend import MEDIAN_TIME_SPAN
from custody.server.errors import Invalid, StateConflict
from custody.server.history.records import movement_records
from custody.server.shown import apart, shown
from custody.server.store.models import ChainBlockRow, MovementRow, VaultRow
from custody.server.vaults.stored import vault_in

# Confirmations of the block that closes a month: a closed month changes only with a reorganisation as deep.
CONFIRMATIONS: Final = 6
NEVER: Final = 2**31 - 1
_LATER: Final = "Ask for it then, or for an earlier month."


@serves(VAULT_STATEMENT)
def vault_statement(ctx: Ctx, query: wire.VaultStatementQuery) -> wire.VaultStatement:
    """Raises NotFound, StateConflict (the month is not closed), Invalid (a cursor of another one)."""
    db, vault = ctx.db, vault_in(ctx.db, ctx.access, query.vault_id)
    first, end = _month(query.month)
    _require_closed(ctx, query.month, end)
    before, until = _first_height(db, vault, first), _first_height(db, vault, end)
    ours = and_(MovementRow.vault_id == vault.id, before <= MovementRow.height, MovementRow.height < until)
    sats = MovementRow.amount_sats
    # Without a cursor, before all.
    height, _, nth = (query.cursor or "-1.0").partition(".")
    place, after = tuple_(MovementRow.height, MovementRow.place), tuple_(int(height), int(nth))
    sums = select(func.sum(sats).filter(sats > 0), func.sum(sats).filter(sats < 0), func.count())
    here = func.count().filter(place == after)
    came, went, count, is_here = db.execute(sums.add_columns(here).where(ours)).one()
    if query.cursor is not None and not is_here:
        raise Invalid.at("/cursor", "It is no place in this month of this vault: begin without it.")
    listed = select(MovementRow).where(ours, place > after).order_by(MovementRow.height, MovementRow.place)
    rows = list(db.scalars(listed.limit(query.limit + 1)))
    page, more = rows[: query.limit], len(rows) > query.limit
    movements, unreadable = apart(
        shown(
            page, lambda some: movement_records(db, ctx.access, [vault], some), "txid", lambda one: one.txid
        )
    )
    opening_height, opening = _balance(db, vault, before)
    closing_height, closing = _balance(db, vault, until)
    return wire.VaultStatement(
        vault_id=vault.id,
        vault_name=vault.name,
        month=query.month,
        from_time=first,
        to_time=end,
        opening_height=opening_height,
        opening_sats=opening,
        came_sats=int(came or 0),
        went_sats=-int(went or 0),
        closing_height=closing_height,
        closing_sats=closing,
        count=count,
        movements=movements,
        unreadable=unreadable,
        next_cursor=f"{page[-1].height}.{page[-1].place}" if more else None,
    )


def _month(text: str) -> tuple[datetime, datetime]:
    """Its beginning and that of the next one, in UTC."""
    year, month = map(int, text.split("-"))
    return datetime(year, month, 1, tzinfo=UTC), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _require_closed(ctx: Ctx, month: str, end: datetime) -> None:
    """By what was read of the chain: what follows a block is later than its median time past (BIP-113)."""
    if ctx.now < end:
        raise StateConflict(
            f"The month {month} is not closed: it ends on {end:%Y-%m-%d} at 00:00 UTC.", hint=_LATER
        )
    of_chain = select(ChainBlockRow.mined_at).where(ChainBlockRow.chain == ctx.access.chain)
    downward = of_chain.order_by(ChainBlockRow.height.desc()).offset(CONFIRMATIONS - 1)
    times = ctx.db.scalars(downward.limit(MEDIAN_TIME_SPAN)).all()
    if not times or median_high(times) < end:
        raise StateConflict(
            f"The month {month} is not closed: its last blocks may still change. It closes about two hours "
            f"after its end: when a block that no block of the month can follow is {CONFIRMATIONS} deep.",
            hint=_LATER,
        )


def _first_height(db: Session, vault: VaultRow, moment: datetime) -> int:
    """Of the first block with a movement of the vault that says this time or a later one, or above all."""
    later = select(func.min(MovementRow.height)).where(MovementRow.vault_id == vault.id)
    height = db.scalar(later.where(MovementRow.mined_at >= moment))
    return NEVER if height is None else height


def _balance(db: Session, vault: VaultRow, before: int) -> tuple[int, int]:
    """The height of the vault's last block with a movement below this one, and its balance there; zeros for
    none.
    """
    last = (
        select(MovementRow.height, MovementRow.balance_sats)
        .where(MovementRow.vault_id == vault.id, MovementRow.height < before)
        .order_by(MovementRow.height.desc(), MovementRow.place.desc())
        .limit(1)
    )
    found = db.execute(last).one_or_none()
    return (0, 0) if found is None else (found[0] or 0, found[1] or 0)
