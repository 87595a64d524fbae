"""The address book of a workspace: addresses with names."""

from itertools import chain
from typing import Any, cast

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from custody.schemas import address_book as wire
from custody.schemas.common import ApiNetwork, Listed
from custody.server.domain.address_book import (
    MAX_ENTRIES,
    AlreadyInBook,
    BookIsFull,
    canonical_address,
    require_name,
)
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import NotFound
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.shown import shown
from custody.server.service.stored_vaults import vault_in
from custody.server.store.models import AddressBookEntry, WatchedScript
from custody.server.store.store import chunks
from custody.text import name_key
from multisig import Network, encode_address


class AddressBook:
    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def entries(
        self, db: Session, access: WorkspaceAccess, wanted: wire.AddressBookQuery
    ) -> Listed[wire.WhitelistAddress]:
        """The oldest first. Raises NotFound (vault)."""
        query = _of(access).order_by(AddressBookEntry.id).limit(wanted.limit)
        if wanted.after is not None:
            query = query.where(AddressBookEntry.id > wanted.after)
        if wanted.search is not None:
            in_name = AddressBookEntry.name_key.contains(name_key(wanted.search), autoescape=True)
            begins = [
                AddressBookEntry.address.startswith(text, autoescape=True)
                # Bech32 may be written in upper case (BIP-173), and is stored in lower case.
                for text in {wanted.search, wanted.search.lower()}
            ]
            query = query.where(or_(in_name, *begins))
        named = [
            *([] if wanted.names is None else [AddressBookEntry.name_key.in_(map(name_key, wanted.names))]),
            *([] if wanted.addresses is None else [AddressBookEntry.address.in_(wanted.addresses)]),
        ]
        if named:
            query = query.where(or_(*named))
        if wanted.leads_to is not None:
            vault, ids = vault_in(db, access, wanted.leads_to), _of(access, AddressBookEntry.id)
            scripts = db.scalars(
                select(WatchedScript.script_pubkey).where(WatchedScript.vault_id == vault.id)
            )
            own = [encode_address(script, Network(vault.chain)) for script in scripts]
            leading = (db.scalars(ids.where(AddressBookEntry.address.in_(some))) for some in chunks(own))
            query = query.where(AddressBookEntry.id.in_(list(chain.from_iterable(leading))))
        found = db.scalars(query).all()
        return shown(
            found,
            lambda some: [_record(each, access.network) for each in some],
            "uid",
            lambda entry: entry.id,
        )

    def add(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.AddWhitelistAddressRequest
    ) -> wire.WhitelistAddress:
        """Raises WrongNetworkAddress, Invalid, NameReadsAsAddress, AlreadyInBook, BookIsFull."""
        require_name(request.name)
        address = canonical_address(request.address, Network(access.chain))
        if (db.scalar(_of(access, func.count())) or 0) >= MAX_ENTRIES:
            raise BookIsFull(f"The address book has {MAX_ENTRIES} entries, the most that it can have.")
        present = db.scalar(_of(access, AddressBookEntry.id).where(AddressBookEntry.address == address))
        if present is not None:
            raise AlreadyInBook(f"The address is in the book already, as entry {present}.")
        _require_free_name(db, access, request.name)
        entry = AddressBookEntry(
            workspace_id=access.workspace_id,
            name=request.name,
            name_key=name_key(request.name),
            address=address,
            created_by=caller.user_id,
            created_at=self._clock(),
        )
        db.add(entry)
        db.flush()
        self._record(db, caller, access, "ADDRESS_ADDED", entry)
        return _record(entry, access.network)

    def rename(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.RenameWhitelistAddressRequest,
    ) -> wire.WhitelistAddress:
        """Raises NotFound, NameReadsAsAddress, AlreadyInBook."""
        entry = _find(db, access, request.uid)
        require_name(request.name)
        _require_free_name(db, access, request.name, besides=entry.id)
        entry.name, entry.name_key = request.name, name_key(request.name)
        self._record(db, caller, access, "ADDRESS_RENAMED", entry)
        return _record(entry, access.network)

    def remove(self, db: Session, caller: Caller, access: WorkspaceAccess, uid: int) -> None:
        """Raises NotFound."""
        entry = _find(db, access, uid)
        db.delete(entry)
        self._record(db, caller, access, "ADDRESS_REMOVED", entry)

    def _record(
        self, db: Session, caller: Caller, access: WorkspaceAccess, action: str, entry: AddressBookEntry
    ) -> None:
        description = f"entry {entry.id}, {entry.address}, named {entry.name}"
        self._audit.record(db, caller, Category.ADDRESS_BOOK, action, description, access=access)


def _of(access: WorkspaceAccess, what: Any = AddressBookEntry) -> Select[Any]:
    return select(what).where(AddressBookEntry.workspace_id == access.workspace_id)


def _find(db: Session, access: WorkspaceAccess, uid: int) -> AddressBookEntry:
    """An entry of another workspace is answered as if it did not exist (P24)."""
    entry = db.get(AddressBookEntry, uid)
    if entry is None or entry.workspace_id != access.workspace_id:
        raise NotFound("There is no such entry in this workspace's address book.")
    return entry


def _require_free_name(db: Session, access: WorkspaceAccess, name: str, *, besides: int = 0) -> None:
    taken = _of(access, AddressBookEntry.id).where(AddressBookEntry.name_key == name_key(name))
    entry_id = db.scalar(taken.where(AddressBookEntry.id != besides))
    if entry_id is not None:
        raise AlreadyInBook(f"Entry {entry_id} has this name already.")


def _record(entry: AddressBookEntry, network: str) -> wire.WhitelistAddress:
    return wire.WhitelistAddress(
        uid=entry.id,
        name=entry.name,
        address=entry.address,
        network=cast("ApiNetwork", network),
        created_by=str(entry.created_by),
        created_at=entry.created_at,
    )
