"""Accounts and addresses of this signer, and their addresses on the device's screen.

Who can page through addresses knows what the extended keys tell: both need the same right.
"""

from typing import Annotated

from multisig import RECEIVE
from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import By, PathId, Route, Service
from signerd.loopback.binding import In

QueryChain = Annotated[shapes.Chain, In.QUERY]
QueryStart = Annotated[shapes.Index, In.QUERY]
QueryCount = Annotated[shapes.Count, In.QUERY]
# A screenful.
USUAL_COUNT = 10


async def accounts(service: Service) -> shapes.AccountKeys:
    return await service.addresses.accounts()


async def vault_addresses(
    service: Service,
    vault_id: PathId,
    chain: QueryChain = RECEIVE,
    start: QueryStart = 0,
    count: QueryCount = USUAL_COUNT,
) -> shapes.AddressPage:
    return await service.addresses.of_vault(vault_id, chain, start, count)


async def profile_addresses(
    service: Service, chain: QueryChain = RECEIVE, start: QueryStart = 0, count: QueryCount = USUAL_COUNT
) -> shapes.AddressPage:
    return await service.addresses.of_profile(chain, start, count)


async def show_vault_address(
    service: Service, caller: By, vault_id: PathId, body: shapes.ShowAddressRequest
) -> shapes.AddressShown:
    return await service.addresses.show_of_vault(vault_id, body.chain, body.index, caller)


async def show_profile_address(
    service: Service, caller: By, body: shapes.ShowAddressRequest
) -> shapes.AddressShown:
    return await service.addresses.show_of_profile(body.chain, body.index, caller)


ROUTES = (
    Route("GET", "/accounts", accounts, Right.XPUB, "The registered keys of this signer"),
    Route("GET", "/vaults/{vault_id}/addresses", vault_addresses, Right.XPUB, "Addresses of a pinned vault"),
    Route(
        "POST",
        "/vaults/{vault_id}/addresses/show",
        show_vault_address,
        Right.DISPLAY,
        "Have the device show an address of a pinned vault",
    ),
    Route("GET", "/profile/addresses", profile_addresses, Right.XPUB, "Addresses of the signer's profile"),
    Route(
        "POST",
        "/profile/addresses/show",
        show_profile_address,
        Right.DISPLAY,
        "Have the device show an address of the profile",
    ),
)
