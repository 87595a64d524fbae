"""Callers other than a person who signed in with a password: programs, by their secret, and sessions of an
organisation's identity provider. Which calls each may make, and the calls that manage providers.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from custody.schemas.auth import (
    IdentityLink,
    IdentityProvider,
    IdentityProviderSecretRequest,
    RemoveIdentityProviderRequest,
    UnlinkIdentityRequest,
    UpdateIdentityProviderRequest,
)
from custody.schemas.call import Way
from custody.schemas.calls import CALLS
from custody.schemas.common import Listed
from custody.schemas.permissions import Auth, PermissionName
from custody.schemas.queries import WorkspaceQuery
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import NotFound, PermissionDenied
from custody.server.web.endpoint import Call, Endpoint, Unit


def _declared(way: Way) -> frozenset[str]:
    """What the declared calls say of themselves."""
    return frozenset(call.path for call in CALLS if way in call.open_to)


# The calls that a program may make, if its rights allow. All others are for people: signing, people, roles,
# policy, whatever can need a second person, one's own account and devices. A new endpoint is closed to
# programs until it is listed here.
FOR_PROGRAMS: Final = frozenset(
    f"/api/v1/{name}"
    for name in (
        "max-send", "psbt",
    )
) | _declared(Way.PROGRAM)  # fmt: skip


def documented(row: Endpoint) -> Mapping[str, bool]:
    """For the OpenAPI document."""
    return {"x-service-accounts": True} if row.path in FOR_PROGRAMS else {}


def require_for_programs(call: Call[None]) -> None:
    """Raises PermissionDenied where a program makes a call that is a person's."""
    is_program = call.maybe_caller is not None and call.maybe_caller.service is not None
    if is_program and call.endpoint.path not in FOR_PROGRAMS:
        raise PermissionDenied("A service account may not call this: it needs a person who is signed in.")


USER_MANAGERS = frozenset({PermissionName.MANAGE_USERS})
ANY_MEMBER: frozenset[PermissionName] = frozenset()

# A provider's session is for the console only (`routes`). Calls about a person and no workspace concern the
# account itself or other organisations, except these.
FOR_BOUND: Final = _declared(Way.BOUND)
# What password sessions may still call where members have to use the provider: linking and leaving.
FOR_UNLINKED: Final = frozenset(
    f"/api/v1/{name}" for name in ("identity-provider", "unlink-identity")
) | _declared(Way.UNLINKED)
# Also for members who confirm an owner's changes, so that two can always remove a failing provider: the calls
# of the console's page of changes.
FOR_SECOND_PERSON: Final = frozenset(
    f"/api/v1/{name}"
    for name in (
        "changes", "confirm-change", "decline-change", "second-person-rule",
    )
) | _declared(Way.DECIDER)  # fmt: skip
# Also, in the API, the calls of a signer's own program, which cannot show a provider's page; and freezing.
FOR_SIGNERS: Final = FOR_UNLINKED | frozenset(
    f"/api/v1/{name}"
    for name in (
        "psbt",
    )
) | _declared(Way.SIGNER)  # fmt: skip


def require_for_bound(call: Call[None]) -> None:
    """Raises PermissionDenied where an identity provider's session calls what is the person's own."""
    is_bound = call.maybe_caller is not None and call.maybe_caller.bound_to is not None
    if is_bound and call.endpoint.needs is Auth.SIGNED_IN and call.endpoint.path not in FOR_BOUND:
        raise PermissionDenied("Sign in with your own password for this, not through the identity provider.")


def let_in(caller: Caller | None, path: str, without_provider: frozenset[str]) -> Caller | None:
    """``without_provider``: the calls that password sessions may make."""
    if caller is None:
        return None
    needs_none, decides = path in without_provider, path in FOR_SECOND_PERSON
    return replace(caller, needs_no_provider=needs_none, decides=decides)


def identity_provider(call: Call[WorkspaceQuery]) -> IdentityProvider:
    """The organisation's, and whether the caller linked their account."""
    return call.services.identity_providers.shown(call.db, call.caller, call.access)


def update_identity_provider(call: Call[UpdateIdentityProviderRequest]) -> IdentityProvider:
    """Sets it, by an owner: a member with all seven permissions in the organisation's first workspace. Another issuer or
    client is another provider: links, and sessions that the one before opened, end.
    """  # noqa: E501
    return call.services.identity_providers.update(call.db, call.caller, call.access, call.body)


def update_identity_provider_secret(call: Call[IdentityProviderSecretRequest]) -> IdentityProvider:
    """What the platform proves itself to the provider with, by an owner. It is never shown again."""
    return call.services.identity_providers.set_secret(call.db, call.caller, call.access, call.body)


def remove_identity_provider(call: Call[RemoveIdentityProviderRequest]) -> IdentityProvider:
    """Ends it with its links and sessions, by an owner. Members sign in with their passwords."""
    return call.services.identity_providers.remove(call.db, call.caller, call.access)


def identity_links(call: Call[WorkspaceQuery]) -> Listed[IdentityLink]:
    """The members whom the provider signs in, the oldest link first."""
    return call.services.identity_providers.links(call.db, call.access)


def unlink_identity(call: Call[UnlinkIdentityRequest]) -> IdentityProvider:
    """Ends a link, and the sessions that came by it: the caller's own, or by an owner any member's. Service accounts that the
    member made go on: `revoke-service-account` ends each.
    """  # noqa: E501
    return call.services.identity_providers.unlink(call.db, call.caller, call.access, call.body.user_uuid)


PROVIDERS = (
    Endpoint(
        "GET", "/api/v1/identity-provider", identity_provider, IdentityProvider, ANY_MEMBER, Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "POST", "/api/v1/update-identity-provider", update_identity_provider, IdentityProvider, USER_MANAGERS,
        Unit.WRITE, UpdateIdentityProviderRequest, needs_second_person=True,
    ),
    Endpoint(
        "POST", "/api/v1/update-identity-provider-secret", update_identity_provider_secret, IdentityProvider,
        USER_MANAGERS, Unit.WRITE, IdentityProviderSecretRequest, refuses=(NotFound,),
    ),
    Endpoint(
        "POST", "/api/v1/remove-identity-provider", remove_identity_provider, IdentityProvider, USER_MANAGERS,
        Unit.WRITE, RemoveIdentityProviderRequest, needs_second_person=True,
    ),
    Endpoint(
        "GET", "/api/v1/identity-links", identity_links, Listed[IdentityLink], USER_MANAGERS, Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "POST", "/api/v1/unlink-identity", unlink_identity, IdentityProvider, ANY_MEMBER, Unit.WRITE,
        UnlinkIdentityRequest,
    ),
)  # fmt: skip
