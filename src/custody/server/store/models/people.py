"""Accounts, sign-in, organisations, workspaces, roles and memberships."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class User(Base):
    """``email`` is lower case. The defaults are null until the first membership."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    first_name: Mapped[str | None]
    surname: Mapped[str | None]
    phone_number: Mapped[str | None]
    default_org_id: Mapped[int | None] = mapped_column(ForeignKey("organisations.id"))
    default_workspace_id: Mapped[int | None] = mapped_column(ForeignKey("workspaces.id"))
    created_at: Mapped[datetime]
    last_login_at: Mapped[datetime | None]


class Credential(Base):
    """How an account proves itself: an Argon2id hash (PHC string), and whether a mailed code is asked too."""

    __tablename__ = "credentials"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    password_hash: Mapped[str]
    two_factor: Mapped[bool]
    updated_at: Mapped[datetime]


class OtpChallenge(Base):
    """A sign-in that waits for its mailed code. ``code_hash`` is keyed by the token, which is not stored."""

    __tablename__ = "otp_challenges"
    __table_args__ = (Index(None, "user_id", "created_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    code_hash: Mapped[bytes]
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


class Organisation(Base):
    __tablename__ = "organisations"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    created_at: Mapped[datetime]


class Workspace(Base):
    """``network`` is what the API says (mainnet or testnet); ``chain`` is what stands behind it."""

    __tablename__ = "workspaces"
    __table_args__ = (
        UniqueConstraint("organisation_id", "name"),
        CheckConstraint("network IN ('mainnet', 'testnet')", name="network"),
        CheckConstraint("(network = 'mainnet') = (chain = 'mainnet')", name="chain_of_network"),
        CheckConstraint("chain IN ('mainnet', 'testnet4', 'signet', 'regtest')", name="chain"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"), index=True)
    name: Mapped[str]
    description: Mapped[str]
    network: Mapped[str]
    chain: Mapped[str]
    created_at: Mapped[datetime]


class Role(Base):
    """A named set of permissions in one workspace."""

    __tablename__ = "roles"
    __table_args__ = (UniqueConstraint("workspace_id", "name"), UniqueConstraint("id", "workspace_id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    name: Mapped[str]
    description: Mapped[str]
    created_at: Mapped[datetime]


class RolePermission(Base):
    __tablename__ = "role_permissions"

    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True)
    permission: Mapped[str] = mapped_column(primary_key=True)


class Membership(Base):
    """One person's one role in one workspace; the database itself refuses another workspace's role."""

    __tablename__ = "memberships"
    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id"),
        ForeignKeyConstraint(["role_id", "workspace_id"], ["roles.id", "roles.workspace_id"]),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    role_id: Mapped[int]
    created_at: Mapped[datetime]


# An open challenge is looked for at each sign-in; closed ones pile up and are not.
Index(
    "ix_otp_challenges_open",
    OtpChallenge.user_id,
    sqlite_where=text("closed_at IS NULL"),
    postgresql_where=text("closed_at IS NULL"),
)
