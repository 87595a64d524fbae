"""An organisation's identity provider, which an owner sets, changes and removes; and its members' links."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import auth as wire
from custody.schemas.common import Listed
from custody.schemas.permissions import PermissionName
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import Invalid, NotFound, PermissionDenied
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.webhooks import BadUrl, read_url
from custody.server.service.audit.log import AuditLog
from custody.server.service.people.staff import membership_in, require_owner_of
from custody.server.service.secrets import ClientSecrets
from custody.server.service.shown import shown
from custody.server.service.sign_in.identity import (
    end_link,
    end_provider,
    link_of,
    provider_of,
    redirect_uri_of,
)
from custody.server.store.models import IdentityLink, IdentityProvider, Membership, Organisation, User


class IdentityProviders:
    """``public_url``: where providers redirect browsers to; None where the platform has no public address.
    ``allowed``: hosts that the operator allows even at private addresses.
    """

    def __init__(
        self,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        secrets: ClientSecrets,
        public_url: str | None,
        allowed: frozenset[str],
    ) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._secrets = secrets
        self._public_url = public_url
        self._allowed = allowed

    def organisation_of(self, db: Session, provider_id: str) -> str | None:
        """The name of the organisation that has this provider."""
        query = select(Organisation.name).join(
            IdentityProvider, IdentityProvider.organisation_id == Organisation.id
        )
        return db.scalar(query.where(IdentityProvider.id == provider_id))

    def shown(self, db: Session, caller: Caller, access: WorkspaceAccess) -> wire.IdentityProvider:
        provider = provider_of(db, access.organisation_id)
        redirect_uri = redirect_uri_of(self._public_url, access.organisation_id)
        if provider is None:
            return wire.IdentityProvider(org_id=access.organisation_id, redirect_uri=redirect_uri)
        link = link_of(db, provider, caller.user_id)
        return wire.IdentityProvider(
            org_id=access.organisation_id,
            provider_id=provider.id,
            issuer=provider.issuer,
            client_id=provider.client_id,
            has_secret=provider.sealed_secret is not None,
            is_required=provider.is_required,
            set_by=str(provider.set_by),
            set_at=provider.set_at,
            redirect_uri=redirect_uri,
            own_link_since=None if link is None else link.linked_at,
        )

    def update(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.UpdateIdentityProviderRequest,
    ) -> wire.IdentityProvider:
        """An update without effect is not recorded. Raises PermissionDenied, Invalid."""
        require_owner_of(db, access.organisation_id, caller.user_id)
        self._check(request.issuer)
        provider = provider_of(db, access.organisation_id)
        is_same = provider is not None and (provider.issuer, provider.client_id) == (
            request.issuer,
            request.client_id,
        )
        if provider is not None and is_same and provider.is_required is request.is_required:
            return self.shown(db, caller, access)
        if provider is None or not is_same:
            end_provider(db, access.organisation_id, self._clock())
            provider = IdentityProvider(
                id=new_id(self._random),
                organisation_id=access.organisation_id,
                issuer=request.issuer,
                client_id=request.client_id,
            )
            db.add(provider)
        provider.is_required, provider.set_by = request.is_required, caller.user_id
        provider.set_at = self._clock()
        db.flush()
        must = "members have to use it" if request.is_required else "members may use it"
        said = f"{request.issuer}, client {request.client_id}, {must}"
        self._record(db, caller, access, "IDENTITY_PROVIDER_SET", said)
        return self.shown(db, caller, access)

    def set_secret(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.IdentityProviderSecretRequest,
    ) -> wire.IdentityProvider:
        """Raises PermissionDenied, NotFound."""
        require_owner_of(db, access.organisation_id, caller.user_id)
        provider = provider_of(db, access.organisation_id)
        if provider is None:
            raise NotFound("The organisation has no identity provider: set it first.")
        provider.sealed_secret = self._secrets.seal(request.client_secret.get_secret_value())
        db.flush()
        self._record(db, caller, access, "IDENTITY_PROVIDER_SECRET_SET", provider.issuer)
        return self.shown(db, caller, access)

    def remove(self, db: Session, caller: Caller, access: WorkspaceAccess) -> wire.IdentityProvider:
        """Idempotent. Raises PermissionDenied."""
        require_owner_of(db, access.organisation_id, caller.user_id)
        provider = provider_of(db, access.organisation_id)
        if provider is not None:
            ended = end_provider(db, access.organisation_id, self._clock())
            said = f"{provider.issuer}, {ended} sessions ended"
            self._record(db, caller, access, "IDENTITY_PROVIDER_REMOVED", said)
        return self.shown(db, caller, access)

    def links(self, db: Session, access: WorkspaceAccess) -> Listed[wire.IdentityLink]:
        """The links of the workspace's members, the oldest first."""
        query = (
            select(IdentityLink, User.email)
            .join(User, User.id == IdentityLink.user_id)
            .join(IdentityProvider, IdentityProvider.id == IdentityLink.provider_id)
            .join(Membership, Membership.user_id == User.id)
            .where(
                IdentityProvider.organisation_id == access.organisation_id,
                Membership.workspace_id == access.workspace_id,
            )
            .order_by(IdentityLink.id)
        )

        def links(some: Sequence[Any]) -> list[wire.IdentityLink]:
            return [
                wire.IdentityLink(
                    user_uuid=link.user_id,
                    email=email,
                    linked_at=link.linked_at,
                    last_used_at=link.last_used_at,
                )
                for link, email in some
            ]

        return shown(db.execute(query).all(), links, "user_uuid", lambda row: int(row[0].user_id))

    def unlink(
        self, db: Session, caller: Caller, access: WorkspaceAccess, user_id: int | None
    ) -> wire.IdentityProvider:
        """Idempotent. Raises NotFound (not a member), PermissionDenied."""
        if user_id not in {None, caller.user_id}:
            if PermissionName.MANAGE_USERS not in access.permissions:
                raise PermissionDenied("Your role in this workspace does not carry MANAGE_USERS.")
            membership_in(db, access, user_id)
        wanted = user_id or caller.user_id
        if end_link(db, access.organisation_id, wanted, self._clock()):
            self._record(db, caller, access, "IDENTITY_UNLINKED", f"user {wanted}")
        return self.shown(db, caller, access)

    def _check(self, issuer: str) -> None:
        """Raises Invalid."""
        if "?" in issuer:
            # OpenID Connect Core, section 2.
            raise Invalid.at("/issuer", "An issuer has no query: leave out the ? and what follows it.")
        try:
            read_url(issuer, self._allowed)
        except BadUrl as error:
            raise Invalid.at("/issuer", str(error)) from None

    def _record(self, db: Session, caller: Caller, access: WorkspaceAccess, action: str, said: str) -> None:
        self._audit.record(db, caller, Category.PEOPLE, action, said, access=access)
