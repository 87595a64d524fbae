"""An organisation's identity provider, through which its members sign in to the console
(docs/operate/sign-in.md).
"""

from typing import Annotated

from pydantic import Field, SecretStr, StrictBool, StringConstraints

from custody.schemas.common import Int64, IntId, Label, Request, Shape, Timestamp

# The platform's rules for addresses apply as well.
Issuer = Annotated[
    str,
    StringConstraints(min_length=1, max_length=300, pattern=r"^[\x21-\x7e]+$"),
    Field(examples=["https://login.example.org"]),
]
# RFC 6749, appendix A.1 and A.2: visible ASCII and the space.
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")]
ClientSecret = Annotated[SecretStr, Field(min_length=1, max_length=500)]


class IdentityProvider(Shape):
    """``provider_id``: names it where members sign in; null where the organisation has none. ``is_required``: members have
    to use it, all but owners. ``redirect_uri``: what the provider is told of this platform; null where the platform has no public
    address. ``own_link_since``: when the caller linked their account.
    """  # noqa: E501

    org_id: Int64
    provider_id: Label | None = None
    issuer: Label | None = None
    client_id: Label | None = None
    has_secret: bool = False
    is_required: bool = False
    set_by: Label | None = None
    set_at: Timestamp | None = None
    redirect_uri: Label | None = None
    own_link_since: Timestamp | None = None


class UpdateIdentityProviderRequest(Request):
    """``POST /api/v1/update-identity-provider``: of the organisation that the workspace belongs to."""

    workspace_id: IntId
    issuer: Issuer
    client_id: ClientId
    is_required: StrictBool = False


class IdentityProviderSecretRequest(Request):
    """``POST /api/v1/update-identity-provider-secret``: it is never shown again."""

    workspace_id: IntId
    client_secret: ClientSecret


class RemoveIdentityProviderRequest(Request):
    """``POST /api/v1/remove-identity-provider``."""

    workspace_id: IntId


class IdentityLink(Shape):
    """A member whom the provider signs in."""

    user_uuid: Int64
    email: Label
    linked_at: Timestamp
    last_used_at: Timestamp | None = None


class UnlinkIdentityRequest(Request):
    """``POST /api/v1/unlink-identity``: of a member; the caller's own where none is named."""

    workspace_id: IntId
    user_uuid: IntId | None = None
