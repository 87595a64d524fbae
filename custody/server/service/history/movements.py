"""A vault's movements in pages, newest or oldest first.

A page reads at most `WINDOW` movements, however few of them match a filter; the next page continues there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, exists, func, or_, select, true, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from custody.schemas import history as wire
from custody.server.domain.address_book import canonical_address
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.errors import Invalid
from custody.server.domain.history import Cursor
from custody.server.service.history.records import movement_records, tip_height
from custody.server.service.proposals.searching import may_read_book
from custody.server.service.shown import apart, shown
from custody.server.service.stored_vaults import vault_in
from custody.server.store.models import AddressBookEntry, ChainCoin, Movement, Proposal, Vault
from multisig import Network, decode_address

WINDOW: Final = 2_000
# A label filter may match this many names in the address book.
MAX_NAMED: Final = 50


@dataclass(frozen=True)
class MovementPage:
    """``cursor``: where the next page begins; None at the end."""

    movements: list[Movement]
    cursor: Cursor | None


class History:
    def page(self, db: Session, access: WorkspaceAccess, query: wire.VaultHistoryQuery) -> wire.VaultHistory:
        """Raises NotFound (vault), Invalid, WrongNetworkAddress."""
        vault = vault_in(db, access, query.vault_id)
        found = self.found(db, access, vault, query)
        movements, unreadable = apart(
            shown(
                found.movements,
                lambda some: movement_records(db, access, vault, some),
                "txid",
                lambda movement: movement.txid,
            )
        )
        return wire.VaultHistory(
            vault_id=vault.id,
            tip_height=tip_height(db, vault.chain),
            movements=movements,
            unreadable=unreadable,
            next_cursor=None if found.cursor is None else str(found.cursor),
        )

    def found(
        self, db: Session, access: WorkspaceAccess, vault: Vault, query: wire.VaultHistoryQuery
    ) -> MovementPage:
        """The movements of a page as they are stored. Raises as `page`."""
        return _Reading(db, vault, query, _filter_of(db, access, vault, query), _cursor(query)).page()


def _cursor(query: wire.VaultHistoryQuery) -> Cursor:
    if query.cursor is None:
        return Cursor()
    cursor = Cursor.parse(query.cursor)
    if cursor is None:
        raise Invalid.at("/cursor", "This is not a next_cursor: send the one of the last answer.")
    return cursor


@dataclass
class _Reading:
    """Reads one page: confirmed movements before pending ones, or the other way round."""

    db: Session
    vault: Vault
    query: wire.VaultHistoryQuery
    filter: "_Filter | None"
    cursor: Cursor
    left: int = field(default_factory=lambda: WINDOW)

    def page(self) -> MovementPage:
        found: list[Movement] = []
        steps = (self._confirmed, self._pending)
        for step in steps if self.query.order == "oldest" else reversed(steps):
            more, cut = step(self.query.limit + 1 - len(found))
            found += more
            if len(found) > self.query.limit:
                return MovementPage(found[:-1], self._after(found[:-1]))
            if cut is not None:
                return MovementPage(found, self._after([*found, cut]))
        return MovementPage(found, None)

    def _after(self, shown: Sequence[Movement]) -> Cursor:
        confirmed = [(one.height, one.place) for one in shown if one.height is not None]
        pending = [(one.first_seen_at, one.txid) for one in shown if one.height is None]
        height, place = confirmed[-1] if confirmed else self.cursor.confirmed or (None, None)
        last = None if height is None or place is None else (height, place)
        if self.query.order == "newest":
            return Cursor(last) if last else Cursor(None, pending[-1] if pending else self.cursor.pending)
        return Cursor(last, pending[-1] if pending else self.cursor.pending)

    def _confirmed(self, count: int) -> tuple[list[Movement], Movement | None]:
        if self.query.status == "pending":
            return [], None
        keys = (Movement.height, Movement.place)
        ours = self._ours().where(Movement.height.is_not(None))
        return self._read(ours, keys, self.cursor.confirmed, count)

    def _pending(self, count: int) -> tuple[list[Movement], Movement | None]:
        is_past = self.query.order == "newest" and self.cursor.confirmed is not None
        if self.query.status == "confirmed" or is_past:
            return [], None
        keys = (Movement.first_seen_at, Movement.txid)
        return self._read(self._ours().where(Movement.height.is_(None)), keys, self.cursor.pending, count)

    def _ours(self) -> Select[Movement]:
        query = select(Movement).where(Movement.vault_id == self.vault.id)
        if self.query.kind is not None:
            query = query.where(Movement.kind == self.query.kind.value)
        return query if self.query.txid is None else query.where(Movement.txid == self.query.txid)

    def _read(
        self,
        query: Select[Movement],
        keys: tuple[InstrumentedAttribute[Any], InstrumentedAttribute[Any]],
        after: tuple[object, object] | None,
        count: int,
    ) -> tuple[list[Movement], Movement | None]:
        """The next movements; and the last one that was read, where the window ended before the list did."""
        is_newest = self.query.order == "newest"
        if after is not None:
            query = query.where(tuple_(*keys) < after if is_newest else tuple_(*keys) > after)
        query = query.order_by(*(key.desc() for key in keys) if is_newest else keys)
        if self.filter is None:
            return list(self.db.scalars(query.limit(count))), None
        window = query.limit(self.left).subquery()
        one = aliased(Movement, window)
        order = [getattr(one, key.key) for key in keys]
        matching = select(one).where(*self.filter.conditions(self.db, one, self.vault))
        found = list(
            self.db.scalars(
                matching.order_by(*(key.desc() for key in order) if is_newest else order).limit(count)
            )
        )
        if len(found) == count:
            return found, None
        read = self.db.scalar(select(func.count()).select_from(window)) or 0
        self.left -= read
        if self.left > 0:
            return found, None
        return found, self.db.scalars(query.offset(read - 1).limit(1)).first()


@dataclass(frozen=True)
class _Filter:
    """The conditions that no index serves. ``named``: addresses whose names contain ``words``."""

    since: datetime | None
    until: datetime | None
    least: int | None
    most: int | None
    address: str | None
    words: str | None
    named: tuple[str, ...]

    def conditions(self, db: Session, one: type[Movement], vault: Vault) -> list[ColumnElement[bool]]:
        at, size = func.coalesce(one.mined_at, one.first_seen_at), func.abs(one.amount_sats)
        found: list[ColumnElement[bool]] = []
        if self.since is not None:
            found.append(at >= self.since)
        if self.until is not None:
            found.append(at < self.until)
        if self.least is not None:
            found.append(size >= self.least)
        if self.most is not None:
            found.append(size <= self.most)
        if self.address is not None:
            found.append(_pays(db, one, vault, [self.address]))
        if self.words is not None:
            title = func.lower(Proposal.description).contains(self.words.lower(), autoescape=True)
            has_title = exists().where(Proposal.id == one.psbt_id, title)
            found.append(or_(has_title, _pays(db, one, vault, self.named)) if self.named else has_title)
        return found


def _pays(db: Session, one: type[Movement], vault: Vault, addresses: Sequence[str]) -> ColumnElement[bool]:
    """The movement pays one of the addresses: the vault's own, or a recipient of its proposal."""
    scripts = [decode_address(address, Network(vault.chain)) for address in addresses]
    is_sqlite = db.get_bind().dialect.name == "sqlite"
    each = func.json_each if is_sqlite else func.json_array_elements_text
    recipient = each(Proposal.recipients).table_valued("value").c.value
    paid = select(func.count()).select_from(Proposal).join(recipient.table, true())
    own = (
        select(func.count())
        .select_from(ChainCoin)
        .where(
            ChainCoin.chain == vault.chain,
            ChainCoin.txid == one.txid,
            ChainCoin.vault_id == vault.id,
            ChainCoin.script_pubkey.in_(scripts),
            one.sent_sats == 0,
        )
    )
    paid = paid.where(Proposal.id == one.psbt_id, recipient.in_(addresses))
    # A count, not EXISTS, for which PostgreSQL would scan all coins and proposals.
    return or_(own.scalar_subquery() > 0, paid.scalar_subquery() > 0)


def _filter_of(
    db: Session, access: WorkspaceAccess, vault: Vault, query: wire.VaultHistoryQuery
) -> _Filter | None:
    """None where indexes serve the whole query."""
    address = query.address and canonical_address(query.address, Network(vault.chain))
    named = () if query.label is None else _named(db, access, query.label)
    bounds = (query.from_time, query.to_time, query.min_sats, query.max_sats)
    found = _Filter(*bounds, address, query.label, named)
    return None if found == _Filter(None, None, None, None, None, None, ()) else found


def _named(db: Session, access: WorkspaceAccess, label: str) -> tuple[str, ...]:
    """The addresses whose names contain the label; none for a caller who may not read the book. Raises
    Invalid for more than `MAX_NAMED`.
    """
    if not may_read_book(access):
        return ()
    is_part = func.lower(AddressBookEntry.name).contains(label.lower(), autoescape=True)
    entries = select(AddressBookEntry.address).where(
        AddressBookEntry.workspace_id == access.workspace_id, is_part
    )
    found = tuple(db.scalars(entries.order_by(AddressBookEntry.id).limit(MAX_NAMED + 1)))
    if len(found) > MAX_NAMED:
        raise Invalid.at(
            "/label", f"More than {MAX_NAMED} names in the address book contain it: write more of the name."
        )
    return found
