"""Accounts: who signs in, what they prove it with, and their sessions."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class User(Base):
    """``email`` is lower case. The defaults are null until the first membership.

    ``is_operator``: reviews requests for organisations; made so from the command line only.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    first_name: Mapped[str | None]
    surname: Mapped[str | None]
    phone_number: Mapped[str | None]
    is_operator: Mapped[bool] = mapped_column(default=False)
    default_org_id: Mapped[int | None] = mapped_column(ForeignKey("organisations.id"))
    default_workspace_id: Mapped[int | None] = mapped_column(ForeignKey("workspaces.id"))
    created_at: Mapped[datetime]
    last_login_at: Mapped[datetime | None]


class Credential(Base):
    """How an account proves itself: an Argon2id hash (PHC string), and the second factor that is asked too.

    ``second_factor`` is ``none``, ``email`` or ``totp``. The authenticator's secret is encrypted, as is one that its owner
    has not confirmed yet; ``totp_last_step`` is the last time step whose code was taken, for none is taken twice (RFC 6238,
    section 5.2).
    """

    __tablename__ = "credentials"
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


class RecoveryCode(Base):
    """Stands in for the authenticator once, where its owner lost it. Only the SHA-256 is here."""

    __tablename__ = "recovery_codes"

    code_hash: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    used_at: Mapped[datetime | None]


class PasswordReset(Base):
    """A mailed link's token, as its SHA-256: good once, for a while."""

    __tablename__ = "password_resets"

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Attempt(Base):
    """One try that is counted against a limit, for all processes alike. ``subject_hash`` names what is limited."""

    __tablename__ = "attempts"
    __table_args__ = (Index(None, "kind", "subject_hash", "tried_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject_hash: Mapped[bytes]
    tried_at: Mapped[datetime] = mapped_column(index=True)


class OtpChallenge(Base):
    """A sign-in that waits for its second factor.

    ``code_hash`` is the mailed code's, keyed by the token, which is not stored; null where the authenticator's is awaited.
    """

    __tablename__ = "otp_challenges"
    __table_args__ = (Index(None, "user_id", "created_at"),)

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


class SignInSession(Base):
    """One sign-in on one device, and its family of refresh tokens.

    ``used_generation`` is the highest generation of a refresh token that was ever used.
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


class AccessToken(Base):
    """Fifteen minutes of access; only the SHA-256 of the token is here."""

    __tablename__ = "access_tokens"

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"), index=True)
    expires_at: Mapped[datetime]


class RefreshToken(Base):
    """One refresh token of a family. Kept after use, so that a replay is recognised."""

    __tablename__ = "refresh_tokens"

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"), index=True)
    generation: Mapped[int]
    expires_at: Mapped[datetime]
    first_used_at: Mapped[datetime | None]


# An open challenge is looked for at each sign-in; closed ones pile up and are not.
Index(
    "ix_otp_challenges_open",
    OtpChallenge.user_id,
    sqlite_where=text("closed_at IS NULL"),
    postgresql_where=text("closed_at IS NULL"),
)
