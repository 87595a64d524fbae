"""The workspace's address book: names for the addresses it pays. Not the lists that a token keeps on the
chain.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from custody.schemas.common import (
    DIGITS,
    ApiNetwork,
    Int64,
    IntId,
    Label,
    Name,
    Request,
    Shape,
    TextId,
    Timestamp,
)
from custody.schemas.queries import QueryId, SearchText, WorkspaceQuery

MAX_PAGE = 500
# As many as a payment has recipients.
MAX_NAMED = 100
# Longer than any address (BIP-173: 90 characters), so that the refusal can say what is wrong with it.
MAX_ADDRESS = 200
AddressText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ADDRESS)]


class WhitelistAddress(Shape):
    """A row of ``GET /api/v1/get-whitelist-addresses``. ``address`` is in its canonical form; ``created_by`` is who entered
    it, a user id.
    """  # noqa: E501

    uid: Int64
    name: Label
    address: Label
    network: ApiNetwork
    created_by: Label = ""
    created_at: Timestamp


class AddressBookQuery(WorkspaceQuery):
    """``GET /api/v1/get-whitelist-addresses``: all of them, or a page; ``after`` is the last ``uid`` seen. ``search``: what
    the name has in it, or how the address begins. ``names`` and ``addresses``: those that have one of them.
    ``leads_to``: the id of a vault, whose addresses they are.
    """  # noqa: E501

    search: SearchText | None = None
    names: Annotated[list[AddressText], Field(max_length=MAX_NAMED)] | None = None
    addresses: Annotated[list[AddressText], Field(max_length=MAX_NAMED)] | None = None
    leads_to: TextId | None = None
    after: QueryId | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), DIGITS] | None = None


class AddWhitelistAddressRequest(Request):
    """``POST /api/v1/add-whitelist-address``."""

    workspace_id: IntId
    name: Name
    address: AddressText


class RenameWhitelistAddressRequest(Request):
    """``POST /api/v1/rename-whitelist-address``: another name for the same address, under the same ``uid``."""  # noqa: E501

    workspace_id: IntId
    uid: IntId
    name: Name


class RemoveWhitelistAddressRequest(Request):
    """``POST /api/v1/remove-whitelist-address``."""

    workspace_id: IntId
    uid: IntId
