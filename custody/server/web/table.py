"""Every endpoint of the platform: the routes, the OpenAPI document and the permission tests are made from this."""

from custody.server.web import (
    account,
    address_book,
    auth,
    forwards,
    invitations,
    keys,
    limits,
    logs,
    onboarding,
    people,
    proposals,
    purchases,
    roles,
    token_records,
    tokens,
    vaults,
    webhooks,
    workspaces,
)
from custody.server.web.endpoint import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *auth.ENDPOINTS,
    *account.ENDPOINTS,
    *people.ENDPOINTS,
    *workspaces.ENDPOINTS,
    *roles.ENDPOINTS,
    *keys.ENDPOINTS,
    *vaults.ENDPOINTS,
    *limits.ENDPOINTS,
    *address_book.ENDPOINTS,
    *invitations.ENDPOINTS,
    *onboarding.ENDPOINTS,
    *proposals.ENDPOINTS,
    *forwards.ENDPOINTS,
    *token_records.ENDPOINTS,
    *tokens.ENDPOINTS,
    *logs.ENDPOINTS,
    *purchases.ENDPOINTS,
    *webhooks.ENDPOINTS,
)
