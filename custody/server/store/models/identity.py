"""Sign-in through an organisation's identity provider: the provider, its links to members, sign-ins under
way.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class IdentityProvider(Base):
    """An organisation's one provider. ``id`` names it where its members sign in. Another issuer or client is
    another provider. ``sealed_secret``: the client's, encrypted; null until it was entered.
    """

    __tablename__ = "identity_providers"

    id: Mapped[str] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"), unique=True)
    issuer: Mapped[str]
    client_id: Mapped[str]
    sealed_secret: Mapped[bytes | None]
    is_required: Mapped[bool]
    set_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    set_at: Mapped[datetime]


class IdentityLink(Base):
    """The user as whom the provider's ``subject`` signs in."""

    __tablename__ = "identity_links"
    __table_args__ = (UniqueConstraint("provider_id", "user_id"), UniqueConstraint("provider_id", "subject"))

    id: Mapped[int] = mapped_column(primary_key=True)
    provider_id: Mapped[str] = mapped_column(ForeignKey("identity_providers.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    subject: Mapped[str]
    linked_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class IdentityFlow(Base):
    """A browser that was redirected to a provider and may return once. ``token_hash``: of the browser's
    token. ``session_id``: the session that links its user; null for a sign-in. No foreign keys: the flow ends
    where its provider or session was deleted.
    """

    __tablename__ = "identity_flows"

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    provider_id: Mapped[str] = mapped_column(index=True)
    session_id: Mapped[int | None]
    target: Mapped[str]
    expires_at: Mapped[datetime] = mapped_column(index=True)
