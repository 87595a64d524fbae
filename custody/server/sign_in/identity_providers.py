"""An organisation's identity provider (OpenID Connect), which an owner sets, changes and removes; its
members' links; and signing in through it: a browser is redirected there and back once.

A provider's subject means a member only because that member linked it, signed in with their own password: a
claim of the provider's, such as an e-mail address, never decides (P73). The session is bound to the
organisation.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.schemas import identity_providers as wire
from custody.schemas.auth import RefreshResponse
from custody.schemas.call import PermissionName
from custody.schemas.common import Listed, WorkspaceQuery, WorkspaceRequest
from custody.server import errors
from custody.server.calls import Ctx, In, Steps, serves
from custody.server.people.people import is_colleague
from custody.server.people.staff import first_workspace, membership_in, require_owner_of
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import IDENTITY_FLOW_LIFETIME, new_id, new_token, token_hash
from custody.server.rules.webhooks import BadUrl, read_url
from custody.server.secrets import Purpose
from custody.server.shown import shape_of, shown
from custody.server.sign_in.access_tokens import end_bound_sessions
from custody.server.sign_in.accounts import about
from custody.server.sign_in.providers import base64url
from custody.server.sign_in.sessions import open_session
from custody.server.store.models import (
    IdentityFlowRow,
    IdentityLinkRow,
    IdentityProviderRow,
    MembershipRow,
    OrganisationRow,
    SignInSessionRow,
    UserRow,
)
from custody.server.vaults.stored import place_of

CALLBACK: Final = "/console/sign-in/organisation/callback"
_MUST = "members [{required}have to|may] use it"
SET = Event("IDENTITY_PROVIDER_SET", "set the identity provider {issuer}: " + _MUST + " // client {client}")
SECRET_SET = Event("IDENTITY_PROVIDER_SECRET_SET", "set the secret of the identity provider {issuer}")
REMOVED = Event("IDENTITY_PROVIDER_REMOVED", "removed the identity provider {issuer}: {ended} sessions ended")
UNLINKED = Event("IDENTITY_UNLINKED", "unlinked the account of {user}")
SIGNED_IN = Event(
    "SIGNED_IN", "// through the identity provider of organisation {organisation}", Category.SIGN_IN
)
REFUSED = Event(
    "SIGN_IN_REFUSED",
    "// identity provider of organisation {organisation}, no member is linked",
    Category.SIGN_IN,
)
LINKED = Event("IDENTITY_LINKED", "linked their account to {issuer} // {user}")
# For each provider. A flow is a row until its browser is back, it expires, or this many began after it.
MAX_OPEN: Final = 1_000
# In the owner's list of sessions.
DEVICE: Final = "Console, through an identity provider"


@serves(wire.IDENTITY_PROVIDER)
def identity_provider(ctx: Ctx, _: WorkspaceQuery) -> wire.IdentityProvider:
    return _details(ctx)


@serves(wire.UPDATE_IDENTITY_PROVIDER)
def update_identity_provider(ctx: Ctx, request: wire.UpdateIdentityProviderRequest) -> wire.IdentityProvider:
    """An update without effect is not recorded. Raises PermissionDenied, Invalid."""
    organisation_id = ctx.access.organisation_id
    require_owner_of(ctx.db, organisation_id, ctx.caller.user_id)
    if "?" in request.issuer:
        # OpenID Connect Core, section 2.
        raise errors.Invalid.at("/issuer", "An issuer has no query: leave out the ? and what follows it.")
    try:
        read_url(request.issuer, ctx.tools.identity_hosts)
    except BadUrl as error:
        raise errors.Invalid.at("/issuer", str(error)) from None
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


@serves(wire.UPDATE_IDENTITY_PROVIDER_SECRET)
def update_identity_provider_secret(
    ctx: Ctx, request: wire.IdentityProviderSecretRequest
) -> wire.IdentityProvider:
    """Raises PermissionDenied, NotFound."""
    require_owner_of(ctx.db, ctx.access.organisation_id, ctx.caller.user_id)
    provider = provider_of(ctx.db, ctx.access.organisation_id)
    if provider is None:
        raise errors.NotFound("The organisation has no identity provider: set it first.")
    secret = request.client_secret.get_secret_value().encode()
    provider.sealed_secret = ctx.tools.secrets.seal(Purpose.IDENTITY_PROVIDER, secret)
    ctx.db.flush()
    ctx.event(SECRET_SET, issuer=provider.issuer)
    return _details(ctx)


@serves(wire.REMOVE_IDENTITY_PROVIDER)
def remove_identity_provider(ctx: Ctx, _: WorkspaceRequest) -> wire.IdentityProvider:
    """Idempotent. Raises PermissionDenied."""
    require_owner_of(ctx.db, ctx.access.organisation_id, ctx.caller.user_id)
    provider = provider_of(ctx.db, ctx.access.organisation_id)
    if provider is not None:
        ended = end_provider(ctx.db, ctx.access.organisation_id, ctx.now)
        ctx.event(REMOVED, issuer=provider.issuer, ended=ended)
    return _details(ctx)


@serves(wire.IDENTITY_LINKS)
def identity_links(ctx: Ctx, _: WorkspaceQuery) -> Listed[wire.IdentityLink]:
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

    def links(some: Sequence[Any]) -> list[wire.IdentityLink]:
        return [
            shape_of(wire.IdentityLink, link, user_uuid=link.user_id, email=email) for link, email in some
        ]

    return shown(ctx.db.execute(query).all(), links, "user_uuid", lambda row: int(row[0].user_id))


@serves(wire.UNLINK_IDENTITY)
def unlink_identity(ctx: Ctx, request: wire.UnlinkIdentityRequest) -> wire.IdentityProvider:
    """Idempotent. Raises NotFound (not a member), PermissionDenied."""
    user_id = request.user_uuid
    if user_id not in {None, ctx.caller.user_id}:
        if PermissionName.MANAGE_USERS not in ctx.access.permissions:
            raise errors.PermissionDenied("Your role in this workspace does not carry MANAGE_USERS.")
        membership_in(ctx.db, ctx.access, user_id)
    wanted = user_id or ctx.caller.user_id
    if end_link(ctx.db, ctx.access.organisation_id, wanted, ctx.now):
        ctx.event(UNLINKED, user=wanted)
    return _details(ctx)


def _details(ctx: Ctx) -> wire.IdentityProvider:
    organisation_id = ctx.access.organisation_id
    provider = provider_of(ctx.db, organisation_id)
    redirect_uri = redirect_uri_of(ctx.tools.public_url, organisation_id)
    if provider is None:
        return wire.IdentityProvider(org_id=organisation_id, redirect_uri=redirect_uri)
    link = link_of(ctx.db, provider, ctx.caller.user_id)
    return shape_of(
        wire.IdentityProvider,
        provider,
        org_id=organisation_id,
        provider_id=provider.id,
        has_secret=provider.sealed_secret is not None,
        redirect_uri=redirect_uri,
        own_link_since=None if link is None else link.linked_at,
    )


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
    row = db.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


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


@dataclass(frozen=True)
class ProviderRedirect:
    """``url``: where the browser is redirected. ``token``: its cookie until it is back."""

    url: str
    issuer: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class ProviderCallback:
    """The parameters of a provider's redirect (RFC 6749, section 4.1.2, and RFC 9207)."""

    state: str
    code: str = field(repr=False)
    error: str
    issuer: str


def begin(provider_id: str, target: str, *, is_linking: bool = False) -> Steps[ProviderRedirect]:
    """Begins a redirect to the provider: to sign in, or to link the caller. ``target``: the path to continue
    at.

    Raises NotFound, StateConflict, PermissionDenied (to link: no member, or signed in by a provider),
    ProviderUnavailable.
    """
    ctx = yield In.SNAPSHOT
    caller = ctx.caller
    provider = ctx.db.get(IdentityProviderRow, provider_id)
    if provider is None:
        raise errors.NotFound("No organisation has this code any more: ask yours for the newest one.")
    redirect_uri = redirect_uri_of(ctx.tools.public_url, provider.organisation_id)
    if provider.sealed_secret is None or redirect_uri is None:
        raise errors.StateConflict("This identity provider is not ready: its owner has to enter its secret.")
    if is_linking and (
        caller.bound_to is not None or not is_colleague(ctx.db, caller.user_id, provider.organisation_id)
    ):
        raise errors.NoRoleOpens("A member links their own account, signed in with their own password.")
    ctx = yield In.NOTHING
    published = ctx.tools.providers.published(provider)
    token = new_token(ctx.tools.random)
    ctx = yield In.WRITE
    now = ctx.now
    ctx.db.execute(delete(IdentityFlowRow).where(IdentityFlowRow.expires_at <= now))
    # The oldest flows are dropped: if new ones were refused, one visitor could lock out all members.
    of_it = select(IdentityFlowRow.token_hash).where(IdentityFlowRow.provider_id == provider.id)
    newest = of_it.order_by(IdentityFlowRow.expires_at.desc()).offset(MAX_OPEN - 1)
    ctx.db.execute(delete(IdentityFlowRow).where(IdentityFlowRow.token_hash.in_(newest)))
    ctx.db.add(
        IdentityFlowRow(
            token_hash=token_hash(token),
            provider_id=provider.id,
            session_id=caller.session_id if is_linking else None,
            target=target,
            expires_at=now + IDENTITY_FLOW_LIFETIME,
        )
    )
    parameters = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": redirect_uri,
        "scope": "openid",
        "state": _of(token, "state"),
        "nonce": _of(token, "nonce"),
        "code_challenge": base64url(sha256(_of(token, "verifier").encode()).digest()),
        "code_challenge_method": "S256",
    }
    if is_linking:
        # The person signs in there anew, so that the last user of that browser is not linked by mistake.
        # `max_age` makes the token say when that was (OpenID Connect Core, section 2).
        parameters |= {"prompt": "login", "max_age": "0"}
    start = published.authorization_endpoint
    url = f"{start}{'&' if '?' in start else '?'}{urlencode(parameters)}"
    return ProviderRedirect(url, provider.issuer, token)


def finish(
    organisation_id: int, token: str, back: ProviderCallback
) -> Steps[tuple[str, RefreshResponse | None]]:
    """The path to continue at, and the tokens of the new session; None where an account was linked.
    ``organisation_id``: from the redirect address. Each redirect works once.

    Raises IdentityRefused with a sentence for the person, and ProviderUnavailable.
    """
    if not hmac.compare_digest(_of(token, "state").encode(), back.state.encode()):
        raise errors.IdentityRefused("This answer belongs to another browser, or to an earlier try.")
    ctx = yield In.WRITE
    flow = ctx.db.get(IdentityFlowRow, token_hash(token), with_for_update=True)
    if flow is None or flow.expires_at <= ctx.now:
        raise errors.IdentityRefused("This sign-in was finished, or took too long.")
    ctx.db.delete(flow)
    provider = _still(ctx.db, flow)
    ctx = yield In.NOTHING
    # Mix-up attack (RFC 9700, section 4.4.2): a provider may redirect the browser to another
    # organisation's provider, to obtain its code.
    if provider.organisation_id != organisation_id:
        raise errors.IdentityRefused("This answer is another organisation's.")
    providers = ctx.tools.providers
    published = providers.published(provider)
    # RFC 9207, section 2.4: the response must be this provider's.
    if back.issuer != provider.issuer and (back.issuer or published.names_issuer):
        raise errors.IdentityRefused("This answer is another provider's.")
    if back.error or not back.code:
        raise errors.IdentityRefused(f"The identity provider did not sign you in{_plain(back.error)}.")
    secret = ctx.tools.secrets.open(Purpose.IDENTITY_PROVIDER, provider.sealed_secret or b"")
    redirect_uri = redirect_uri_of(ctx.tools.public_url, provider.organisation_id)
    if secret is None or redirect_uri is None:
        raise errors.IdentityRefused("The provider's secret cannot be read: an owner has to enter it again.")
    verifier = _of(token, "verifier")
    id_token = providers.redeem(provider, secret.decode(), redirect_uri, back.code, verifier)
    since = None if flow.session_id is None else flow.expires_at - IDENTITY_FLOW_LIFETIME
    subject = providers.subject(provider, id_token, _of(token, "nonce"), since)
    ctx = yield In.WRITE
    if flow.session_id is not None:
        _link(ctx, flow, flow.session_id, subject)
        return flow.target, None
    provider = _still(ctx.db, flow)
    tokens = _open(ctx, provider, subject)
    if tokens is not None:
        return flow.target, tokens
    ctx.event(REFUSED, organisation=provider.organisation_id)
    yield In.NOTHING
    raise errors.IdentityRefused(
        "The provider knows you, and no member is linked with you. Sign in with your password, and "
        "link your account under Your account."
    )


def _open(ctx: Ctx, provider: IdentityProviderRow, subject: str) -> RefreshResponse | None:
    """Of the member's new session."""
    wanted = (IdentityLinkRow.provider_id == provider.id, IdentityLinkRow.subject == subject)
    link = ctx.db.scalars(select(IdentityLinkRow).where(*wanted)).one_or_none()
    if link is None or not is_colleague(ctx.db, link.user_id, provider.organisation_id):
        return None
    user = ctx.db.get_one(UserRow, link.user_id)
    link.last_used_at = ctx.now
    tokens = open_session(ctx, user, DEVICE, None, bound_to=provider.organisation_id)
    about(ctx, user).event(SIGNED_IN, organisation=provider.organisation_id)
    return tokens


def _link(ctx: Ctx, flow: IdentityFlowRow, session_id: int, subject: str) -> None:
    """Raises IdentityRefused."""
    db, provider, session = ctx.db, _still(ctx.db, flow), ctx.db.get(SignInSessionRow, session_id)
    if session is None or session.revoked_at is not None:
        raise errors.IdentityRefused("You are not signed in any more: sign in with your password, then link.")
    if not is_colleague(db, session.user_id, provider.organisation_id):
        raise errors.IdentityRefused("You are no member of this organisation any more.")
    known = select(IdentityLinkRow.id).where(IdentityLinkRow.provider_id == provider.id)
    if db.scalar(known.where(IdentityLinkRow.subject == subject)) is not None:
        raise errors.IdentityRefused("This account of the provider's is linked already.")
    if link_of(db, provider, session.user_id) is not None:
        raise errors.IdentityRefused("Your account is linked already: unlink it first.")
    user = db.get_one(UserRow, session.user_id)
    ctx.add(IdentityLinkRow(provider_id=provider.id, user_id=user.id, subject=subject, linked_at=ctx.now))
    access = place_of(db, db.scalar(select(first_workspace(provider.organisation_id))) or 0)
    replace(about(ctx, user), maybe_access=access).event(LINKED, user=user.id, issuer=provider.issuer)


def _still(db: Session, flow: IdentityFlowRow) -> IdentityProviderRow:
    """Raises IdentityRefused."""
    provider = db.get(IdentityProviderRow, flow.provider_id, populate_existing=True)
    if provider is None:
        raise errors.IdentityRefused("The organisation changed its identity provider meanwhile.")
    return provider


def _of(token: str, purpose: str) -> str:
    """A secret of a flow, derived from the browser's token, so that none is stored."""
    return base64url(hmac.digest(token.encode(), purpose.encode(), "sha256"))


def _plain(error: str) -> str:
    """The error, if it looks like a code of RFC 6749 or OpenID Connect."""
    is_code = 0 < len(error) <= 40 and error.isascii() and error.replace("_", "").isalpha()
    return f": it says {error}" if is_code else ""
