"""The address book of a workspace: addresses with names."""

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import address_book as wire
from custody.schemas.common import ApiNetwork
from custody.server.domain.address_book import (
    MAX_ENTRIES,
    AlreadyInBook,
    BookIsFull,
    canonical_address,
    name_key,
)
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import NotFound
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.store.models import AddressBookEntry
from multisig import Network


class AddressBook:
    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def entries(self, db: Session, access: WorkspaceAccess) -> list[wire.WhitelistAddress]:
        """The workspace's entries, the oldest first."""
        return [_record(entry, access.network) for entry in _entries(db, access)]

    def add(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.AddWhitelistAddressRequest
    ) -> wire.WhitelistAddress:
        """Raises WrongNetworkAddress, Invalid, AlreadyInBook, BookIsFull."""
        address = canonical_address(request.address, Network(access.chain))
        present = _entries(db, access)
        if len(present) >= MAX_ENTRIES:
            raise BookIsFull(f"The address book holds {MAX_ENTRIES} entries, which is as many as it can.")
        for entry in present:
            if entry.address == address:
                raise AlreadyInBook(f"The address is in the book already, as entry {entry.id}.")
        _require_free_name(present, request.name)
        entry = AddressBookEntry(
            workspace_id=access.workspace_id,
            name=request.name,
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
        """Raises NotFound, AlreadyInBook."""
        entry = _find(db, access, request.uid)
        _require_free_name([other for other in _entries(db, access) if other is not entry], request.name)
        entry.name = request.name
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


def _entries(db: Session, access: WorkspaceAccess) -> list[AddressBookEntry]:
    query = select(AddressBookEntry).where(AddressBookEntry.workspace_id == access.workspace_id)
    return list(db.scalars(query.order_by(AddressBookEntry.id)))


def _find(db: Session, access: WorkspaceAccess, uid: int) -> AddressBookEntry:
    """An entry of another workspace is answered as if it did not exist (P24)."""
    entry = db.get(AddressBookEntry, uid)
    if entry is None or entry.workspace_id != access.workspace_id:
        raise NotFound("There is no such entry in this workspace's address book.")
    return entry


def _require_free_name(others: list[AddressBookEntry], name: str) -> None:
    for entry in others:
        if name_key(entry.name) == name_key(name):
            raise AlreadyInBook(f"Entry {entry.id} has this name already.")


def _record(entry: AddressBookEntry, network: str) -> wire.WhitelistAddress:
    return wire.WhitelistAddress(
        uid=entry.id,
        name=entry.name,
        address=entry.address,
        network=cast("ApiNetwork", network),
        created_by=str(entry.created_by),
        created_at=entry.created_at,
    )
