"""An organisation's identity provider. Programs sign in with a password and a code, or with a service
account.
"""

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.common import LATER, Few
from custody.schemas.identity import (
    IdentityLink,
    IdentityProvider,
    IdentityProviderSecretRequest,
    RemoveIdentityProviderRequest,
    UnlinkIdentityRequest,
    UpdateIdentityProviderRequest,
)

_LINKS = TypeAdapter(Few[IdentityLink], config=LATER)


class IdentityCalls:
    @row("GET", "/api/v1/identity-provider", IdentityProvider, repeatable=True)
    @staticmethod
    def identity_provider(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/update-identity-provider", IdentityProvider, repeatable=True)
    @staticmethod
    def update_identity_provider(body: UpdateIdentityProviderRequest) -> Sent:
        """Another issuer or client is another provider: links and sessions of the former one end."""
        return Sent(body)

    @row("POST", "/api/v1/update-identity-provider-secret", IdentityProvider, repeatable=True)
    @staticmethod
    def update_identity_provider_secret(body: IdentityProviderSecretRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/remove-identity-provider", IdentityProvider, repeatable=True)
    @staticmethod
    def remove_identity_provider(body: RemoveIdentityProviderRequest) -> Sent:
        return Sent(body)

    @row("GET", "/api/v1/identity-links", _LINKS, repeatable=True)
    @staticmethod
    def identity_links(workspace_id: int) -> Sent:
        """The members whom it signs in, the oldest link first."""
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/unlink-identity", IdentityProvider, repeatable=True)
    @staticmethod
    def unlink_identity(body: UnlinkIdentityRequest) -> Sent:
        return Sent(body)
