"""The workspace's address book: names for the addresses it pays. Not the lists that a token keeps on the
chain.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from custody.schemas.common import (
    ApiNetwork,
    Int64,
    IntId,
    Label,
    Name,
    Request,
    Shape,
    Timestamp,
)
from custody.schemas.queries import QueryId, WorkspaceQuery

MAX_PAGE = 500
# Longer than any address (BIP-173: 90 characters), so that the refusal can say what is wrong with it.
AddressText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


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
    the name has in it, or how the address begins.
    """  # noqa: E501

    search: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] | None = (
        None
    )
    after: QueryId | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] | None = None


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
