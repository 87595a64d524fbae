"""An organisation's identity provider, which an owner sets, changes and removes; and its members' links."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.schemas.common import Listed, WorkspaceQuery, WorkspaceRequest
from custody.schemas.identity_providers import (
    IDENTITY_LINKS,
    IDENTITY_PROVIDER,
    REMOVE_IDENTITY_PROVIDER,
    UNLINK_IDENTITY,
    UPDATE_IDENTITY_PROVIDER,
    UPDATE_IDENTITY_PROVIDER_SECRET,
    IdentityLink,
    IdentityProvider,
    IdentityProviderSecretRequest,
    UnlinkIdentityRequest,
    UpdateIdentityProviderRequest,
)
from custody.schemas.permissions import PermissionName
from custody.server.calls import Ctx, serves
from custody.server.errors import Invalid, NotFound, PermissionDenied
from custody.server.people.staff import membership_in, require_owner_of
from custody.server.rules.audit import Event
from custody.server.rules.credentials import new_id
from custody.server.rules.webhooks import BadUrl, read_url
from custody.server.secrets import Purpose
from custody.server.shown import shape_of, shown
from custody.server.sign_in.access_tokens import end_bound_sessions
from custody.server.store.models import (
    IdentityFlowRow,
    IdentityLinkRow,
    IdentityProviderRow,
    MembershipRow,
    OrganisationRow,
    UserRow,
)

CALLBACK: Final = "/console/sign-in/organisation/callback"
_MUST = "members [{required}have to|may] use it"
SET = Event(
    "IDENTITY_PROVIDER_SET",
    "{issuer}, client {client}, " + _MUST,
    "set the identity provider {issuer}: " + _MUST,
)
SECRET_SET = Event(
    "IDENTITY_PROVIDER_SECRET_SET", "{issuer}", "set the secret of the identity provider {issuer}"
)
REMOVED = Event(
    "IDENTITY_PROVIDER_REMOVED",
    "{issuer}, {ended} sessions ended",
    "removed the identity provider {issuer}: {ended} sessions ended",
)
UNLINKED = Event("IDENTITY_UNLINKED", "user {user}", "unlinked the account of {user}")


@serves(IDENTITY_PROVIDER)
def identity_provider(ctx: Ctx, _: WorkspaceQuery) -> IdentityProvider:
    return _details(ctx)


@serves(UPDATE_IDENTITY_PROVIDER)
def update_identity_provider(ctx: Ctx, request: UpdateIdentityProviderRequest) -> IdentityProvider:
    """An update without effect is not recorded. Raises PermissionDenied, Invalid."""
    organisation_id = ctx.access.organisation_id
    require_owner_of(ctx.db, organisation_id, ctx.caller.user_id)
    _check(ctx, request.issuer)
    provider = provider_of(ctx.db, organisation_id)
    is_same = provider is not None and (provider.issuer, provider.client_id) == (
        request.issuer,
        request.client_id,
    )
    if provider is not None and is_same and provider.is_required is request.is_required:
        return _details(ctx)
    if provider is None or not is_same:
        end_provider(ctx.db, organisation_id, ctx.now)
        provider = IdentityProviderRow(
            id=new_id(ctx.tools.random),
            organisation_id=organisation_id,
            issuer=request.issuer,
            client_id=request.client_id,
        )
        ctx.db.add(provider)
    provider.is_required, provider.set_by = request.is_required, ctx.caller.user_id
    provider.set_at = ctx.now
    ctx.db.flush()
    ctx.event(SET, issuer=request.issuer, client=request.client_id, required=request.is_required)
    return _details(ctx)


@serves(UPDATE_IDENTITY_PROVIDER_SECRET)
def update_identity_provider_secret(ctx: Ctx, request: IdentityProviderSecretRequest) -> IdentityProvider:
    """Raises PermissionDenied, NotFound."""
    require_owner_of(ctx.db, ctx.access.organisation_id, ctx.caller.user_id)
    provider = provider_of(ctx.db, ctx.access.organisation_id)
    if provider is None:
        raise NotFound("The organisation has no identity provider: set it first.")
    secret = request.client_secret.get_secret_value().encode()
    provider.sealed_secret = ctx.tools.secrets.seal(Purpose.IDENTITY_PROVIDER, secret)
    ctx.db.flush()
    ctx.event(SECRET_SET, issuer=provider.issuer)
    return _details(ctx)


@serves(REMOVE_IDENTITY_PROVIDER)
def remove_identity_provider(ctx: Ctx, _: WorkspaceRequest) -> IdentityProvider:
    """Idempotent. Raises PermissionDenied."""
    require_owner_of(ctx.db, ctx.access.organisation_id, ctx.caller.user_id)
    provider = provider_of(ctx.db, ctx.access.organisation_id)
    if provider is not None:
        ended = end_provider(ctx.db, ctx.access.organisation_id, ctx.now)
        ctx.event(REMOVED, issuer=provider.issuer, ended=ended)
    return _details(ctx)


@serves(IDENTITY_LINKS)
def identity_links(ctx: Ctx, _: WorkspaceQuery) -> Listed[IdentityLink]:
    """Of the workspace's members."""
    query = (
        select(IdentityLinkRow, UserRow.email)
        .join(UserRow, UserRow.id == IdentityLinkRow.user_id)
        .join(IdentityProviderRow, IdentityProviderRow.id == IdentityLinkRow.provider_id)
        .join(MembershipRow, MembershipRow.user_id == UserRow.id)
        .where(
            IdentityProviderRow.organisation_id == ctx.access.organisation_id,
            MembershipRow.workspace_id == ctx.access.workspace_id,
        )
        .order_by(IdentityLinkRow.id)
    )

    def links(some: Sequence[Any]) -> list[IdentityLink]:
        return [shape_of(IdentityLink, link, user_uuid=link.user_id, email=email) for link, email in some]

    return shown(ctx.db.execute(query).all(), links, "user_uuid", lambda row: int(row[0].user_id))


@serves(UNLINK_IDENTITY)
def unlink_identity(ctx: Ctx, request: UnlinkIdentityRequest) -> IdentityProvider:
    """Idempotent. Raises NotFound (not a member), PermissionDenied."""
    user_id = request.user_uuid
    if user_id not in {None, ctx.caller.user_id}:
        if PermissionName.MANAGE_USERS not in ctx.access.permissions:
            raise PermissionDenied("Your role in this workspace does not carry MANAGE_USERS.")
        membership_in(ctx.db, ctx.access, user_id)
    wanted = user_id or ctx.caller.user_id
    if end_link(ctx.db, ctx.access.organisation_id, wanted, ctx.now):
        ctx.event(UNLINKED, user=wanted)
    return _details(ctx)


def _details(ctx: Ctx) -> IdentityProvider:
    organisation_id = ctx.access.organisation_id
    provider = provider_of(ctx.db, organisation_id)
    redirect_uri = redirect_uri_of(ctx.tools.public_url, organisation_id)
    if provider is None:
        return IdentityProvider(org_id=organisation_id, redirect_uri=redirect_uri)
    link = link_of(ctx.db, provider, ctx.caller.user_id)
    return shape_of(
        IdentityProvider,
        provider,
        org_id=organisation_id,
        provider_id=provider.id,
        has_secret=provider.sealed_secret is not None,
        set_by=str(provider.set_by),
        redirect_uri=redirect_uri,
        own_link_since=None if link is None else link.linked_at,
    )


def _check(ctx: Ctx, issuer: str) -> None:
    """Raises Invalid."""
    if "?" in issuer:
        # OpenID Connect Core, section 2.
        raise Invalid.at("/issuer", "An issuer has no query: leave out the ? and what follows it.")
    try:
        read_url(issuer, ctx.tools.identity_hosts)
    except BadUrl as error:
        raise Invalid.at("/issuer", str(error)) from None


def redirect_uri_of(public_url: str | None, organisation_id: int) -> str | None:
    """The redirect URI of an organisation's identity provider: one for each organisation, so that another
    provider's code is recognised (RFC 9700, section 4.4.2.2). Providers compare each character (section 2.1).
    """
    parts = urlsplit(public_url or "")
    return f"{parts.scheme}://{parts.netloc}{CALLBACK}/{organisation_id}" if parts.netloc else None


def issuer_and_organisation(db: Session, provider_id: str) -> tuple[str, str] | None:
    """Of a provider's code: its issuer and its organisation's name; None where it is unknown or has no secret
    yet.
    """
    query = (
        select(IdentityProviderRow.issuer, OrganisationRow.name)
        .join(OrganisationRow, OrganisationRow.id == IdentityProviderRow.organisation_id)
        .where(IdentityProviderRow.id == provider_id, IdentityProviderRow.sealed_secret.is_not(None))
    )
    found = db.execute(query).one_or_none()
    return None if found is None else (found[0], found[1])


def provider_of(db: Session, organisation_id: int) -> IdentityProviderRow | None:
    query = select(IdentityProviderRow).where(IdentityProviderRow.organisation_id == organisation_id)
    return db.scalars(query).one_or_none()


def link_of(db: Session, provider: IdentityProviderRow, user_id: int) -> IdentityLinkRow | None:
    wanted = (IdentityLinkRow.provider_id == provider.id, IdentityLinkRow.user_id == user_id)
    return db.scalars(select(IdentityLinkRow).where(*wanted)).one_or_none()


def end_provider(db: Session, organisation_id: int, now: datetime) -> int:
    """Deletes the provider, its links and flows, and ends the sessions that it opened; returns their
    number.
    """
    provider = provider_of(db, organisation_id)
    if provider is None:
        return 0
    db.execute(delete(IdentityLinkRow).where(IdentityLinkRow.provider_id == provider.id))
    db.execute(delete(IdentityFlowRow).where(IdentityFlowRow.provider_id == provider.id))
    db.delete(provider)
    db.flush()
    return end_bound_sessions(db, organisation_id, now)


def end_link(db: Session, organisation_id: int, user_id: int, now: datetime) -> bool:
    """Deletes a member's link and ends its sessions. Returns whether there was one."""
    provider = provider_of(db, organisation_id)
    link = None if provider is None else link_of(db, provider, user_id)
    if link is None:
        return False
    db.delete(link)
    db.flush()
    end_bound_sessions(db, organisation_id, now, user_id)
    return True
