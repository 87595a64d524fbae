"""The address book of a workspace: addresses with names, and what may stand in it."""

from typing import Any

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from custody.common.recipients import alike_words, typed_address
from custody.common.text import name_key, require_seen
from custody.schemas import address_book as wire
from custody.schemas.common import Done, Listed
from custody.server.calls import Ctx, serves
from custody.server.errors import Invalid, StateConflict
from custody.server.proposals.payments import read_script
from custody.server.proposals.propose import resembling
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import shape_of, shown
from custody.server.store.models import AddressBookEntryRow, WatchedScriptRow
from custody.server.store.store import rows_in
from custody.server.vaults.stored import vault_in
from multisig import Network, encode_address

# Enough for everyone whom a large company pays.
MAX_ENTRIES = 10_000


_IS_THERE = "Rename the entry that is there, or choose another name."


ADDED = Event(
    "ADDRESS_ADDED",
    "put {name} in the address book: {address}[, which is not {resembles}] // entry {entry}",
    Category.ADDRESS_BOOK,
)
RENAMED = Event(
    "ADDRESS_RENAMED",
    "renamed an entry of the address book to {name}: {address} // entry {entry}",
    Category.ADDRESS_BOOK,
)
REMOVED = Event(
    "ADDRESS_REMOVED",
    "took {name} out of the address book: {address} // entry {entry}",
    Category.ADDRESS_BOOK,
)


@serves(wire.WHITELIST_ADDRESSES)
def whitelist_addresses(ctx: Ctx, wanted: wire.AddressBookQuery) -> Listed[wire.WhitelistAddress]:
    query = _of(ctx.access).order_by(AddressBookEntryRow.id).limit(wanted.limit)
    if wanted.after is not None:
        query = query.where(AddressBookEntryRow.id > wanted.after)
    if wanted.search is not None:
        in_name = AddressBookEntryRow.name_key.contains(name_key(wanted.search), autoescape=True)
        begins = [
            AddressBookEntryRow.address.startswith(text, autoescape=True)
            # Bech32 may be written in upper case (BIP-173), and is stored in lower case.
            for text in {wanted.search, wanted.search.lower()}
        ]
        query = query.where(or_(in_name, *begins))
    named = [
        *([] if wanted.names is None else [AddressBookEntryRow.name_key.in_(map(name_key, wanted.names))]),
        *([] if wanted.addresses is None else [AddressBookEntryRow.address.in_(wanted.addresses)]),
    ]
    if named:
        query = query.where(or_(*named))
    if wanted.leads_to is not None:
        query = query.where(AddressBookEntryRow.id.in_(_leading_to(ctx, wanted.leads_to)))
    rows, network = ctx.db.scalars(query).all(), ctx.access.network
    return shown(rows, lambda some: [_shape(each, network) for each in some], "uid", lambda entry: entry.id)


def _leading_to(ctx: Ctx, vault_id: str) -> list[int]:
    """The entries that pay one of the vault's addresses. Raises NotFound."""
    vault, ids = vault_in(ctx.db, ctx.access, vault_id), _of(ctx.access, AddressBookEntryRow.id)
    scripts = select(WatchedScriptRow.script_pubkey).where(WatchedScriptRow.vault_id == vault.id)
    own = [encode_address(script, Network(vault.chain)) for script in ctx.db.scalars(scripts)]
    return [uid for (uid,) in rows_in(ctx.db, ids, AddressBookEntryRow.address, own)]


@serves(wire.ADD_WHITELIST_ADDRESS)
def add_whitelist_address(ctx: Ctx, request: wire.AddWhitelistAddressRequest) -> wire.WhitelistAddress:
    db, access = ctx.db, ctx.access
    require_name(request.name)
    address = canonical_address(request.address, Network(access.chain))
    if (db.scalar(_of(access, func.count())) or 0) >= MAX_ENTRIES:
        raise StateConflict(
            f"The address book has {MAX_ENTRIES} entries, the most that it can have.",
            hint="Remove entries that are no longer needed.",
        )
    present = db.scalar(_of(access, AddressBookEntryRow.name).where(AddressBookEntryRow.address == address))
    if present is not None:
        raise StateConflict(f"The address is in the book already, as {present!r}.", hint=_IS_THERE)
    _require_free_name(db, access, request.name)
    known = resembling(db, access, [address]).get(address)
    if known not in (None, request.resembles):
        hint = (
            "Who has compared them says so where it is added: in the console by the box, over the API by the "
            f"field `resembles` with {known}. A change that waits is declined, and asked for again so."
        )
        raise StateConflict(alike_words(address, known), hint=hint, figures={"resembles": known})
    entry = AddressBookEntryRow(
        workspace_id=access.workspace_id,
        name=request.name,
        name_key=name_key(request.name),
        address=address,
        created_by=ctx.caller.user_id,
        created_at=ctx.now,
    )
    ctx.add(entry)
    return _recorded(ctx, ADDED, entry, resembles=known)


@serves(wire.RENAME_WHITELIST_ADDRESS)
def rename_whitelist_address(ctx: Ctx, request: wire.RenameWhitelistAddressRequest) -> wire.WhitelistAddress:
    entry = ctx.find(AddressBookEntryRow, request.uid, "entry of the address book")
    require_name(request.name)
    _require_free_name(ctx.db, ctx.access, request.name, besides=entry.id)
    entry.name, entry.name_key = request.name, name_key(request.name)
    return _recorded(ctx, RENAMED, entry)


@serves(wire.REMOVE_WHITELIST_ADDRESS)
def remove_whitelist_address(ctx: Ctx, request: wire.RemoveWhitelistAddressRequest) -> Done:
    entry = ctx.find(AddressBookEntryRow, request.uid, "entry of the address book")
    ctx.db.delete(entry)
    _recorded(ctx, REMOVED, entry)
    return Done()


def _recorded(ctx: Ctx, event: Event, entry: AddressBookEntryRow, **more: Any) -> wire.WhitelistAddress:
    ctx.event(event, entry=entry.id, address=entry.address, name=entry.name, **more)
    return _shape(entry, ctx.access.network)


def _of(access: WorkspaceAccess, what: Any = AddressBookEntryRow) -> Select[Any]:
    return select(what).where(AddressBookEntryRow.workspace_id == access.workspace_id)


def _require_free_name(db: Session, access: WorkspaceAccess, name: str, *, besides: int = 0) -> None:
    taken = _of(access, AddressBookEntryRow.address).where(AddressBookEntryRow.name_key == name_key(name))
    address = db.scalar(taken.where(AddressBookEntryRow.id != besides))
    if address is not None:
        raise StateConflict(f"{address} has this name already.", hint=_IS_THERE)


def _shape(entry: AddressBookEntryRow, network: str) -> wire.WhitelistAddress:
    return shape_of(wire.WhitelistAddress, entry, uid=entry.id, network=network)


def canonical_address(text: str, network: Network) -> str:
    """The canonical spelling of an address, so that two entries for one script compare equal (P28).

    Raises WrongNetworkAddress, Invalid.
    """
    canonical = encode_address(read_script(text, network, "/address"), network)
    assert canonical is not None, "a script that an address gave has an address"
    return canonical


def require_name(name: str) -> None:
    """Raises Invalid for what reads as an address: a payer who types that address must not pay another one by
    its name. Also where a reader cannot see a part of it.
    """
    if typed_address(name) is not None:
        hint = "Choose a name in words: what reads as an address is paid as that address."
        raise Invalid.at("/name", "The name reads as an address or as a bitcoin: link.", hint=hint)
    try:
        require_seen(name)
    except ValueError as error:
        raise Invalid.at("/name", f"The name {error}.") from None
