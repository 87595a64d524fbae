"""A vault's movements in pages, newest or oldest first; and those of the vaults that it replaces, if asked.

A page reads at most `WINDOW` movements of a vault, however few of them match a filter; the next page goes on
from there.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, exists, func, or_, select, true, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from custody.schemas import history as wire
from custody.schemas.address_book import KEEPERS
from custody.schemas.history import VAULT_HISTORY
from custody.server.address_book import canonical_address
from custody.server.calls import Ctx, serves
from custody.server.errors import Invalid
from custody.server.history.records import as_one, movement_records, tip_height
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import apart, shown
from custody.server.store.models import AddressBookEntryRow, ChainCoinRow, MovementRow, ProposalRow, VaultRow
from custody.server.store.store import going_on
from custody.server.vaults.stored import line_before, vault_in
from multisig import Network, decode_address

WINDOW: Final = 2_000
# A label filter may match this many names in the address book.
MAX_NAMED: Final = 50


# (0, height, place) of a confirmed movement, (1, first seen, txid) of a pending one: ordered as the list from
# the oldest on.
Position = tuple[int, Any, Any]
Condition = Callable[[type[MovementRow]], ColumnElement[bool]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(
    r"(?:(?P<height>[0-9]{1,10})\.(?P<place>[0-9]{1,10}))?(?:_(?P<seen>[0-9]{1,17})_(?P<txid>[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class Cursor:
    """The last movement of a page: a confirmed one by (height, place), a pending one by (first seen, txid).

    When pages go from the oldest on, a pending cursor also keeps the last confirmed place. A movement that
    confirms between two pages is then shown again at its new place, with its balance, and none is left out.
    """

    confirmed: tuple[int, int] | None = None
    pending: tuple[datetime, str] | None = None

    def __str__(self) -> str:
        place = "" if self.confirmed is None else f"{self.confirmed[0]}.{self.confirmed[1]}"
        if self.pending is None:
            return place
        seen, txid = self.pending
        return f"{place}_{(seen - EPOCH) // timedelta(microseconds=1)}_{txid}"

    @classmethod
    def parse(cls, text: str) -> "Cursor | None":
        """None for text that is not a cursor."""
        match = _CURSOR.fullmatch(text)
        if match is None or not text:
            return None
        height, place, seen, txid = match.group("height", "place", "seen", "txid")
        confirmed = None if height is None else (int(height), int(place))
        pending = None if seen is None else (EPOCH + timedelta(microseconds=int(seen)), txid)
        return cls(confirmed, pending)


@serves(VAULT_HISTORY)
def vault_history(ctx: Ctx, query: wire.VaultHistoryQuery) -> wire.VaultHistory:
    db, access = ctx.db, ctx.access
    vault = vault_in(db, access, query.vault_id)
    vaults = [vault, *(line_before(db, vault) if query.with_replaced else [])]
    page, following = _page(db, access, vaults, query)

    def records(some: Sequence[MovementRow]) -> list[wire.VaultMovement]:
        made = movement_records(db, access, vaults, some)
        return made if len(vaults) == 1 else as_one(db, vaults, made)

    movements, unreadable = apart(shown(page, records, "txid", lambda movement: movement.txid))
    return wire.VaultHistory(
        vault_id=vault.id,
        tip_height=tip_height(db, vault.chain),
        movements=movements,
        unreadable=unreadable,
        next_cursor=None if following is None else str(following),
    )


def _page(
    db: Session, access: WorkspaceAccess, vaults: Sequence[VaultRow], query: wire.VaultHistoryQuery
) -> tuple[list[MovementRow], Cursor | None]:
    """The movements of a page as they are stored, and where the next page begins; None at the end."""
    cursor, conditions = _cursor(query), _conditions(db, access, vaults, query)
    is_newest = query.order == "newest"
    movements: list[tuple[Position, MovementRow]] = []
    ends: list[Position] = []
    for rank in range(len(vaults)):
        reading = _Reading(db, vaults, rank, query, conditions, cursor)
        some, end = reading.page()
        movements += ((reading.position(one), one) for one in some)
        ends += () if end is None else (end,)
    movements.sort(key=itemgetter(0), reverse=is_newest)
    # Where the first vault's page ends, its next movement may come before those of the others.
    end = None if not ends else max(ends) if is_newest else min(ends)
    if end is not None:
        movements = [each for each in movements if (each[0] >= end if is_newest else each[0] <= end)]
    if len(movements) > query.limit:
        movements = movements[: query.limit]
        end = movements[-1][0]
    shown = [one for _, one in movements]
    if end is None:
        return shown, None
    is_pending, *at = end
    if not is_pending:
        return shown, Cursor((at[0], at[1]), None if is_newest else cursor.pending)
    confirmed = [(height, place) for (pending, height, place), _ in movements if not pending]
    return shown, Cursor(confirmed[-1] if confirmed else cursor.confirmed, (at[0], at[1]))


def _cursor(query: wire.VaultHistoryQuery) -> Cursor:
    if query.cursor is None:
        return Cursor()
    cursor = Cursor.parse(query.cursor)
    if cursor is None:
        raise Invalid.at("/cursor", "This is not a next_cursor: send the one of the last answer.")
    return cursor


@dataclass
class _Reading:
    """Reads a page of one vault: confirmed movements before pending ones, or the other way round."""

    db: Session
    vaults: Sequence[VaultRow]
    rank: int
    query: wire.VaultHistoryQuery
    conditions: Sequence[Condition]
    cursor: Cursor
    left: int = field(default_factory=lambda: WINDOW)

    def page(self) -> tuple[list[MovementRow], Position | None]:
        """And where it ended before the list did."""
        rows: list[MovementRow] = []
        steps = (self._confirmed, self._pending)
        for step in steps if self.query.order == "oldest" else reversed(steps):
            more, cut = step(self.query.limit + 1 - len(rows))
            rows += more
            if len(rows) > self.query.limit:
                return rows[:-1], self.position(rows[-2])
            if cut is not None:
                return rows, self.position(cut)
        return rows, None

    def position(self, one: MovementRow) -> Position:
        """Places of several vaults are counted in turn, so that no two are the same."""
        if one.height is None or one.place is None:
            seen = one.first_seen_at
            return 1, seen if isinstance(seen, datetime) else EPOCH, one.txid
        return 0, one.height, one.place * len(self.vaults) + self.rank

    def _confirmed(self, count: int) -> tuple[list[MovementRow], MovementRow | None]:
        if self.query.status == "pending":
            return [], None
        keys, after = (MovementRow.height, MovementRow.place), self.cursor.confirmed
        if after is not None:
            # The vault's own place: of the last one before the cursor, or of the first one after it.
            height, turns = after[0], after[1] - self.rank
            count_of = len(self.vaults)
            after = height, turns // count_of if self.query.order == "oldest" else -(-turns // count_of)
        return self._read(self._ours().where(MovementRow.height.is_not(None)), keys, after, count)

    def _pending(self, count: int) -> tuple[list[MovementRow], MovementRow | None]:
        is_past = self.query.order == "newest" and self.cursor.confirmed is not None
        if self.query.status == "confirmed" or is_past:
            return [], None
        keys = (MovementRow.first_seen_at, MovementRow.txid)
        return self._read(self._ours().where(MovementRow.height.is_(None)), keys, self.cursor.pending, count)

    def _ours(self) -> Select[MovementRow]:
        query = select(MovementRow).where(MovementRow.vault_id == self.vaults[self.rank].id)
        if len(self.vaults) > 1:
            query = query.where(~_shown_elsewhere(self.vaults))
        if self.query.kind is not None:
            query = query.where(MovementRow.kind == self.query.kind.value)
        return query if self.query.txid is None else query.where(MovementRow.txid == self.query.txid)

    def _read(
        self,
        query: Select[MovementRow],
        keys: tuple[InstrumentedAttribute[Any], InstrumentedAttribute[Any]],
        after: tuple[object, object] | None,
        count: int,
    ) -> tuple[list[MovementRow], MovementRow | None]:
        """The next movements; and the last one that was read, where the window ended before the list did."""
        is_newest = self.query.order == "newest"
        query = going_on(query, keys, after, newest=is_newest)
        if not self.conditions:
            return list(self.db.scalars(query.limit(count))), None
        window = query.limit(self.left).subquery()
        one = aliased(MovementRow, window)
        matching = select(one).where(*(condition(one) for condition in self.conditions))
        listed = going_on(matching, [getattr(one, key.key) for key in keys], None, newest=is_newest)
        rows = list(self.db.scalars(listed.limit(count)))
        if len(rows) == count:
            return rows, None
        read = self.db.scalar(select(func.count()).select_from(window)) or 0
        self.left -= read
        if self.left > 0:
            return rows, None
        return rows, self.db.scalars(query.offset(read - 1).limit(1)).first()


def _shown_elsewhere(vaults: Sequence[VaultRow]) -> ColumnElement[bool]:
    """Of a transaction between the vaults, the side that it left is shown."""
    other = aliased(MovementRow)
    return exists(
        select(other.txid)
        .where(other.txid == MovementRow.txid, other.vault_id.in_([vault.id for vault in vaults]))
        .where(tuple_(other.sent_sats, other.vault_id) > tuple_(MovementRow.sent_sats, MovementRow.vault_id))
        .correlate(MovementRow)
    )


def _pays(
    db: Session, one: type[MovementRow], vaults: Sequence[VaultRow], addresses: Sequence[str]
) -> ColumnElement[bool]:
    """The movement pays one of the addresses: the vaults' own, or a recipient of its proposal."""
    chain, ids = vaults[0].chain, [vault.id for vault in vaults]
    scripts = [decode_address(address, Network(chain)) for address in addresses]
    is_sqlite = db.get_bind().dialect.name == "sqlite"
    each = func.json_each if is_sqlite else func.json_array_elements_text
    recipient = each(ProposalRow.recipients).table_valued("value").c.value
    paid = select(func.count()).select_from(ProposalRow).join(recipient.table, true())
    own = (
        select(func.count())
        .select_from(ChainCoinRow)
        .where(
            ChainCoinRow.chain == chain,
            ChainCoinRow.txid == one.txid,
            ChainCoinRow.vault_id.in_(ids),
            ChainCoinRow.script_pubkey.in_(scripts),
            one.sent_sats == 0,
        )
    )
    paid = paid.where(ProposalRow.id == one.psbt_id, recipient.in_(addresses))
    # A count, not EXISTS, for which PostgreSQL would scan all coins and proposals.
    return or_(own.scalar_subquery() > 0, paid.scalar_subquery() > 0)


def _conditions(
    db: Session, access: WorkspaceAccess, vaults: Sequence[VaultRow], query: wire.VaultHistoryQuery
) -> list[Condition]:
    """The conditions that no index serves. Raises Invalid."""
    conditions: list[Condition] = []
    if (since := query.from_time) is not None:
        conditions.append(lambda one: func.coalesce(one.mined_at, one.first_seen_at) >= since)
    if (until := query.to_time) is not None:
        conditions.append(lambda one: func.coalesce(one.mined_at, one.first_seen_at) < until)
    if (least := query.min_sats) is not None:
        conditions.append(lambda one: func.abs(one.amount_sats) >= least)
    if (most := query.max_sats) is not None:
        conditions.append(lambda one: func.abs(one.amount_sats) <= most)
    if query.address:
        address = canonical_address(query.address, Network(vaults[0].chain))
        conditions.append(lambda one: _pays(db, one, vaults, [address]))
    if (label := query.label) is not None:
        named = _named(db, access, label)
        title = func.lower(ProposalRow.description).contains(label.lower(), autoescape=True)

        def is_labelled(one: type[MovementRow]) -> ColumnElement[bool]:
            has_title = exists().where(ProposalRow.id == one.psbt_id, title)
            return or_(has_title, _pays(db, one, vaults, named)) if named else has_title

        conditions.append(is_labelled)
    return conditions


def _named(db: Session, access: WorkspaceAccess, label: str) -> tuple[str, ...]:
    """The addresses whose names contain the label; none for a caller who may not read the book. Raises
    Invalid for more than `MAX_NAMED`.
    """
    if not access.holds_any(KEEPERS):
        return ()
    is_part = func.lower(AddressBookEntryRow.name).contains(label.lower(), autoescape=True)
    entries = select(AddressBookEntryRow.address).where(
        AddressBookEntryRow.workspace_id == access.workspace_id, is_part
    )
    named = tuple(db.scalars(entries.order_by(AddressBookEntryRow.id).limit(MAX_NAMED + 1)))
    if len(named) > MAX_NAMED:
        raise Invalid.at(
            "/label", f"More than {MAX_NAMED} names in the address book contain it: write more of the name."
        )
    return named
