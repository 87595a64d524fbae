"""Every endpoint of the platform: the routes, the OpenAPI document and the permission tests are made from this."""

from custody.server.web import (
    account,
    address_book,
    asset_tokens,
    auth,
    joining,
    limits,
    logs,
    people,
    proposals,
    purchases,
    roles,
    vaults,
    webhooks,
)
from custody.server.web.endpoint import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *auth.ENDPOINTS,
    *account.ENDPOINTS,
    *people.ENDPOINTS,
    *roles.ENDPOINTS,
    *vaults.ENDPOINTS,
    *limits.ENDPOINTS,
    *address_book.ENDPOINTS,
    *joining.ENDPOINTS,
    *proposals.ENDPOINTS,
    *asset_tokens.ENDPOINTS,
    *logs.ENDPOINTS,
    *purchases.ENDPOINTS,
    *webhooks.ENDPOINTS,
)
