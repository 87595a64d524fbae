"""Accounts: people and their sign-in, also through an organisation's identity provider; programs; and
purchases.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base, only_where


class UserRow(Base):
    """``email`` is lower case. The defaults are null until the first membership.

    ``is_operator``: reviews requests for organisations; made so from the command line only.
    """

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    first_name: Mapped[str | None]
    surname: Mapped[str | None]
    phone_number: Mapped[str | None]
    is_operator: Mapped[bool] = mapped_column(default=False)
    # Whether they are mailed when something waits for them, with amounts or without; and when they last were.
    mails_waiting: Mapped[bool] = mapped_column(default=True)
    mails_amounts: Mapped[bool] = mapped_column(default=False)
    waiting_mailed_at: Mapped[datetime | None]
    default_org_id: Mapped[int | None] = mapped_column(ForeignKey("organisations.id"))
    default_workspace_id: Mapped[int | None] = mapped_column(ForeignKey("workspaces.id"))
    created_at: Mapped[datetime]
    last_login_at: Mapped[datetime | None]


def full_name(first_name: str | None, surname: str | None) -> str:
    """Empty where the user gave no name."""
    return " ".join(filter(None, (first_name, surname)))


class CredentialRow(Base):
    """An account's password as an Argon2id hash (PHC string), and its second factor.


    ``second_factor`` is ``none``, ``email`` or ``totp``. The authenticator's secret is encrypted, as is one
    that its owner has not confirmed yet. ``totp_last_step``: the last time step whose code was accepted,
    because none is accepted twice (RFC 6238, section 5.2).
    """

    __table_args__ = (
        CheckConstraint("second_factor IN ('none', 'email', 'totp')", name="second_factor"),
        CheckConstraint("second_factor <> 'totp' OR totp_secret IS NOT NULL", name="totp"),
    )

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    password_hash: Mapped[str]
    second_factor: Mapped[str]
    totp_secret: Mapped[bytes | None]
    totp_pending: Mapped[bytes | None]
    totp_last_step: Mapped[int | None]
    updated_at: Mapped[datetime]


class RecoveryCodeRow(Base):
    """Replaces the authenticator's code once, where its owner lost it. Only its SHA-256 is stored."""

    code_hash: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    used_at: Mapped[datetime | None]


class PasskeyRow(Base):
    """A WebAuthn credential. ``credential``: its id and public key, as the authenticator attested them."""

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    credential_id: Mapped[bytes] = mapped_column(unique=True)
    credential: Mapped[bytes]
    sign_count: Mapped[int]
    name: Mapped[str]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class PasswordResetRow(Base):
    """A mailed link's token, as its SHA-256: good once, for a while."""

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class AttemptRow(Base):
    """One attempt that counts for a limit, in all processes. ``subject_hash`` identifies what is limited."""

    __table_args__ = (Index(None, "kind", "subject_hash", "tried_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject_hash: Mapped[bytes]
    tried_at: Mapped[datetime] = mapped_column(index=True)


class OtpChallengeRow(Base):
    """A sign-in that waits for its second factor, or a session (``session_id``) that proves it once more.

    ``code_hash`` is the mailed code's, keyed by the token, which is not stored; null where the
    authenticator's is awaited, empty where a passkey is being made and no code is.
    """

    __table_args__ = (
        Index(None, "user_id", "created_at"),
        # Each sign-in looks for open challenges, among many closed ones.
        Index("ix_otp_challenges_open", "user_id", **only_where("closed_at IS NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    code_hash: Mapped[bytes | None]
    tries: Mapped[int]
    device: Mapped[str | None]
    location: Mapped[str | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id"))


class SignInSessionRow(Base):
    """One sign-in on one device, and its family of refresh tokens.

    ``used_generation`` is the highest generation of a refresh token that was ever used. ``stepped_up_at``:
    when its person last proved the second factor again.
    """

    __tablename__ = "sessions"

    id: Mapped[int] = mapped_column(primary_key=True)
    sid: Mapped[str] = mapped_column(unique=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    device: Mapped[str | None]
    location: Mapped[str | None]
    used_generation: Mapped[int]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    revoked_reason: Mapped[str | None]
    stepped_up_at: Mapped[datetime | None]
    # The organisation whose identity provider opened it; null where the person's own means did.
    bound_to: Mapped[int | None] = mapped_column(ForeignKey("organisations.id"), index=True)


class AccessTokenRow(Base):
    """Fifteen minutes of access; only the SHA-256 of the token is here."""

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"), index=True)
    expires_at: Mapped[datetime]


class RefreshTokenRow(Base):
    """One refresh token of a family. Kept after use, so that a replay is recognised."""

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"), index=True)
    generation: Mapped[int]
    expires_at: Mapped[datetime]
    first_used_at: Mapped[datetime | None]


class IdentityProviderRow(Base):
    """An organisation's one provider. ``id`` names it where its members sign in. Another issuer or client is
    another provider. ``sealed_secret``: the client's, encrypted; null until it was entered.
    """

    id: Mapped[str] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"), unique=True)
    issuer: Mapped[str]
    client_id: Mapped[str]
    sealed_secret: Mapped[bytes | None]
    is_required: Mapped[bool]
    set_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    set_at: Mapped[datetime]


class IdentityLinkRow(Base):
    """The user as whom the provider's ``subject`` signs in."""

    __table_args__ = (UniqueConstraint("provider_id", "user_id"), UniqueConstraint("provider_id", "subject"))

    id: Mapped[int] = mapped_column(primary_key=True)
    provider_id: Mapped[str] = mapped_column(ForeignKey("identity_providers.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    subject: Mapped[str]
    linked_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class IdentityFlowRow(Base):
    """A browser that was redirected to a provider and may return once. ``token_hash``: of the browser's
    token. ``session_id``: the session that links its user; null for a sign-in. No foreign keys: the flow ends
    where its provider or session was deleted.
    """

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    provider_id: Mapped[str] = mapped_column(index=True)
    session_id: Mapped[int | None]
    target: Mapped[str]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class ServiceAccountRow(Base):
    """A program's account in one workspace, which acts in the name of ``made_by``; kept after revocation.
    Secrets are stored as SHA-256; the former one is valid until ``former_until``.
    """

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), index=True)
    made_by: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str]
    rights: Mapped[list[str]]
    networks: Mapped[list[str]]
    secret_hash: Mapped[bytes | None]
    former_hash: Mapped[bytes | None]
    former_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_from: Mapped[str | None]


class PurchaseRow(Base):
    """A purchase of bitcoin as its provider last reported it. Amounts are decimals, stored as the text that
    came.

    ``user_id``: the member whose profile address receives it; null where the address is no member's.
    """

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    status: Mapped[str]
    base_currency_amount: Mapped[str]
    base_currency_code: Mapped[str]
    quote_currency_amount: Mapped[str]
    quote_currency_code: Mapped[str]
    fee_amount: Mapped[str]
    extra_fee_amount: Mapped[str]
    network_fee_amount: Mapped[str]
    are_fees_included: Mapped[bool]
    wallet_address: Mapped[str]
    crypto_transaction_id: Mapped[str]
    failure_reason: Mapped[str | None]
    external_transaction_id: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
