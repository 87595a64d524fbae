"""An organisation's identity provider, through which its members sign in to the console
(docs/operate/sign-in.md), and the links of their accounts to it. Programs do not sign in through it: they
sign in with a password and a code, or call with ``Session.of_service_account(secret)`` of ``custody.client``.
"""

from typing import Annotated

from pydantic import Field, SecretStr, StrictBool, StringConstraints

from custody.schemas.call import ANY_MEMBER, USER_MANAGERS, Call, Way, few
from custody.schemas.common import Int64, IntId, Label, Shape, Timestamp, WorkspaceQuery, WorkspaceRequest
from custody.schemas.errors import ErrorCode

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


class UpdateIdentityProviderRequest(WorkspaceRequest):
    """Of the organisation that the workspace belongs to."""

    issuer: Issuer
    client_id: ClientId
    is_required: StrictBool = False


class IdentityProviderSecretRequest(WorkspaceRequest):
    client_secret: ClientSecret


class IdentityLink(Shape):
    """A member whom the provider signs in."""

    user_uuid: Int64
    email: Label
    linked_at: Timestamp
    last_used_at: Timestamp | None = None


class UnlinkIdentityRequest(WorkspaceRequest):
    """Of a member; the caller's own where none is named."""

    user_uuid: IntId | None = None


IDENTITY_PROVIDER = Call(
    "GET", "/api/v1/identity-provider", WorkspaceQuery, IdentityProvider,
    "The organisation's, and whether the caller linked their account.",
    ANY_MEMBER, attempt="see the identity provider", open_to=frozenset({Way.UNLINKED}),
)  # fmt: skip
UPDATE_IDENTITY_PROVIDER = Call(
    "POST", "/api/v1/update-identity-provider", UpdateIdentityProviderRequest, IdentityProvider,
    "Sets it, by an owner: a member with all seven permissions in the organisation's first workspace. "
    "Another issuer or\nclient is another provider: links, and sessions that the one before opened, end.",
    USER_MANAGERS, second_person="Set the organisation's identity provider", cools=True, repeatable=True,
)  # fmt: skip
UPDATE_IDENTITY_PROVIDER_SECRET = Call(
    "POST", "/api/v1/update-identity-provider-secret", IdentityProviderSecretRequest, IdentityProvider,
    "What the platform proves itself to the provider with, by an owner. It is never shown again.",
    USER_MANAGERS, attempt="set the secret of the identity provider", repeatable=True,
    refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
REMOVE_IDENTITY_PROVIDER = Call(
    "POST", "/api/v1/remove-identity-provider", WorkspaceRequest, IdentityProvider,
    "Ends it with its links and sessions, by an owner. Members sign in with their passwords.",
    USER_MANAGERS, second_person="Remove the organisation's identity provider", cools=True, repeatable=True,
)  # fmt: skip
IDENTITY_LINKS = Call(
    "GET", "/api/v1/identity-links", WorkspaceQuery, few(IdentityLink),
    "The members whom the provider signs in, the oldest link first.",
    USER_MANAGERS, attempt="see who is linked to the identity provider",
)  # fmt: skip
UNLINK_IDENTITY = Call(
    "POST", "/api/v1/unlink-identity", UnlinkIdentityRequest, IdentityProvider,
    "Ends a link, and the sessions that came by it: the caller's own, or by an owner any member's. Service "
    "accounts that the\nmember made go on: `revoke-service-account` ends each.",
    ANY_MEMBER, attempt="unlink an account", open_to=frozenset({Way.UNLINKED}), repeatable=True,
)  # fmt: skip
