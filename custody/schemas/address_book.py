"""The workspace's address book: names for the addresses it pays. Not the lists that a token keeps on the
chain.
"""

from typing import Annotated

from pydantic import StringConstraints

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
