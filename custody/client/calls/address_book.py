"""The workspace's address book."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.address_book import (
    AddWhitelistAddressRequest,
    RemoveWhitelistAddressRequest,
    RenameWhitelistAddressRequest,
    WhitelistAddress,
)
from custody.schemas.common import Done, Many

_ADDRESSES = TypeAdapter(Many[WhitelistAddress])


class AddressBookCalls:
    @method
    @staticmethod
    def whitelist_addresses(core: Core, workspace_id: int) -> Plan[list[WhitelistAddress]]:
        """``GET /api/v1/get-whitelist-addresses``."""
        request = core.build("GET", "/api/v1/get-whitelist-addresses", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), _ADDRESSES)

    @method
    @staticmethod
    def add_whitelist_address(
        core: Core, body: AddWhitelistAddressRequest, *, idempotency_key: str | None = None
    ) -> Plan[WhitelistAddress]:
        """``POST /api/v1/add-whitelist-address``."""
        request = core.build(
            "POST", "/api/v1/add-whitelist-address", body, headers=idempotency(idempotency_key)
        )
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), WhitelistAddress
        )

    @method
    @staticmethod
    def rename_whitelist_address(core: Core, body: RenameWhitelistAddressRequest) -> Plan[WhitelistAddress]:
        """``POST /api/v1/rename-whitelist-address``. Repeatable: the same name again changes nothing."""
        request = core.build("POST", "/api/v1/rename-whitelist-address", body)
        return read((yield from call(core, request, repeatable=True)), WhitelistAddress)

    @method
    @staticmethod
    def remove_whitelist_address(core: Core, body: RemoveWhitelistAddressRequest) -> Plan[Done]:
        """``POST /api/v1/remove-whitelist-address``. Not repeated: the second answer would be that there is none."""
        request = core.build("POST", "/api/v1/remove-whitelist-address", body)
        return read((yield from call(core, request, repeatable=False)), Done)
