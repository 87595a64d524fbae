"""Organisations' identity providers (OpenID Connect) as they are stored, and their members' links."""

from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.server.sign_in.access_tokens import end_bound_sessions
from custody.server.store.models import IdentityFlowRow, IdentityLinkRow, IdentityProviderRow, OrganisationRow

CALLBACK: Final = "/console/sign-in/organisation/callback"


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
