"""The workspace's address book: names for the addresses it pays. Not the lists that a token keeps on the
chain.
"""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from custody.schemas.call import WORKSPACE_MANAGERS, Call, PermissionName, Way, many
from custody.schemas.common import (
    ApiNetwork,
    Done,
    Int64,
    IntId,
    Label,
    Name,
    PageSize,
    QueryId,
    SearchText,
    Shape,
    TextId,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

KEEPERS: Final = WORKSPACE_MANAGERS | {PermissionName.PAYMENT_INIT}
# As many as a payment has recipients.
MAX_NAMED = 100
# Longer than any address (BIP-173: 90 characters), so that the refusal can say what is wrong with it.
MAX_ADDRESS = 200
AddressText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ADDRESS)]
# Addresses with commas between them.
AddressesText = Annotated[str, StringConstraints(max_length=400, pattern=r"^[0-9A-Za-z, ]+$")]


class WhitelistAddress(Shape):
    """``address`` is in its canonical form; ``created_by`` is who entered it, a user id."""

    uid: Int64
    name: Label
    address: Label
    network: ApiNetwork
    created_by: Label = ""
    created_at: Timestamp


class AddressBookQuery(WorkspaceQuery):
    """All of them, or a page; ``after`` is the last ``uid`` seen. ``search``: what the name has in it, or how the address begins.
    ``names`` and ``addresses``: those that have one of them. ``leads_to``: the id of a vault, whose addresses they are.
    """  # noqa: E501

    search: SearchText | None = None
    names: Annotated[list[AddressText], Field(max_length=MAX_NAMED)] | None = None
    addresses: Annotated[list[AddressText], Field(max_length=MAX_NAMED)] | None = None
    leads_to: TextId | None = None
    after: QueryId | None = None
    limit: PageSize | None = None


class AddWhitelistAddressRequest(WorkspaceRequest):
    """``resembles``: the known addresses that this one only resembles, as the refusal names it (``figures.resembles``), by who has
    compared the two.
    """  # noqa: E501

    name: Name
    address: AddressText
    resembles: AddressesText | None = None


class RemoveWhitelistAddressRequest(WorkspaceRequest):
    uid: IntId


class RenameWhitelistAddressRequest(RemoveWhitelistAddressRequest):
    name: Name


WHITELIST_ADDRESSES = Call(
    "GET", "/api/v1/get-whitelist-addresses", AddressBookQuery, many(WhitelistAddress),
    "The workspace's entries, the oldest first: all of them, or a page of those that match.",
    KEEPERS, attempt="see the address book", open_to=frozenset({Way.PROGRAM}),
)  # fmt: skip
ADD_WHITELIST_ADDRESS = Call(
    "POST", "/api/v1/add-whitelist-address", AddWhitelistAddressRequest, WhitelistAddress,
    "Gives an address of the workspace's network a name. Each address and each name stands in the book once.",
    KEEPERS, creates=True, second_person="Add an address to the address book", cools=True,
    refuses=(ErrorCode.STATE_CONFLICT, ErrorCode.WRONG_NETWORK_ADDRESS),
)  # fmt: skip
RENAME_WHITELIST_ADDRESS = Call(
    "POST", "/api/v1/rename-whitelist-address", RenameWhitelistAddressRequest, WhitelistAddress,
    "Another name for the same address; its ``uid`` stays.",
    KEEPERS, second_person="Rename an address of the address book", repeatable=True,
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
REMOVE_WHITELIST_ADDRESS = Call(
    "POST", "/api/v1/remove-whitelist-address", RemoveWhitelistAddressRequest, Done,
    "Takes an entry out of the book. What tokens accept on the chain does not change.",
    KEEPERS, second_person="Remove an address from the address book",
)  # fmt: skip
