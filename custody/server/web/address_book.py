"""The workspace's address book. The lists that tokens keep on the chain are another thing."""

from custody.schemas.address_book import (
    AddWhitelistAddressRequest,
    RemoveWhitelistAddressRequest,
    RenameWhitelistAddressRequest,
    WhitelistAddress,
)
from custody.schemas.common import Done
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import StateConflict, WrongNetworkAddress
from custody.server.web.endpoint import Call, Endpoint, Unit

PAYERS = frozenset({PermissionName.PAYMENT_INIT, PermissionName.MANAGE_WORKSPACE})


def get_whitelist_addresses(call: Call[WorkspaceQuery]) -> list[WhitelistAddress]:
    """The workspace's entries, the oldest first."""
    return call.services.address_book.entries(call.db, call.access)


def add_whitelist_address(call: Call[AddWhitelistAddressRequest]) -> WhitelistAddress:
    """Gives an address of the workspace's network a name. Each address and each name stands in the book once."""
    return call.services.address_book.add(call.db, call.caller, call.access, call.body)


def rename_whitelist_address(call: Call[RenameWhitelistAddressRequest]) -> WhitelistAddress:
    """Another name for the same address; its ``uid`` stays."""
    return call.services.address_book.rename(call.db, call.caller, call.access, call.body)


def remove_whitelist_address(call: Call[RemoveWhitelistAddressRequest]) -> Done:
    """Takes an entry out of the book. What tokens accept on the chain does not change."""
    call.services.address_book.remove(call.db, call.caller, call.access, call.body.uid)
    return Done()


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/v1/get-whitelist-addresses",
        get_whitelist_addresses,
        list[WhitelistAddress],
        PAYERS,
        Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "POST",
        "/api/v1/add-whitelist-address",
        add_whitelist_address,
        WhitelistAddress,
        PAYERS,
        Unit.WRITE,
        AddWhitelistAddressRequest,
        creates=True,
        refuses=(StateConflict, WrongNetworkAddress),
    ),
    Endpoint(
        "POST",
        "/api/v1/rename-whitelist-address",
        rename_whitelist_address,
        WhitelistAddress,
        PAYERS,
        Unit.WRITE,
        RenameWhitelistAddressRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/remove-whitelist-address",
        remove_whitelist_address,
        Done,
        PAYERS,
        Unit.WRITE,
        RemoveWhitelistAddressRequest,
    ),
)
