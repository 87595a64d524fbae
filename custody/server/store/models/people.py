"""Organisations, workspaces, roles with their spending policy, memberships, and the invitations to them."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base

_PENDING = text("status = 'pending'")


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
    """A named set of permissions in one workspace, and what each member who holds it may move in a cycle.

    A deleted role's id is never given to another: the audit log and invitations that were decided still name it.
    """

    __tablename__ = "roles"
    __table_args__ = (
        UniqueConstraint("workspace_id", "name"),
        UniqueConstraint("id", "workspace_id"),
        CheckConstraint("limit_sats >= 0", name="limit"),
        CheckConstraint("cycle_period IN ('W', 'M')", name="cycle_period"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    name: Mapped[str]
    description: Mapped[str]
    limit_sats: Mapped[int]
    cycle_period: Mapped[str]
    cycle_day: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


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


class Invitation(Base):
    """A place in a workspace that is offered to an address. One address has one open offer for each workspace.

    ``role_id`` is no foreign key: an offer that was decided outlives its role. A membership's is.
    """

    __tablename__ = "invitations"
    __table_args__ = (
        CheckConstraint("status IN ('pending', 'accepted', 'declined', 'expired', 'revoked')", name="status"),
        # For the sweep of what ran out, several times a second; and for how many an organisation sent of late.
        Index(None, "status", "expires_at"),
        Index(None, "organisation_id", "created_at"),
        Index(
            "uq_invitations_pending",
            "workspace_id",
            "invited_email",
            unique=True,
            sqlite_where=_PENDING,
            postgresql_where=_PENDING,
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"))
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    role_id: Mapped[int]
    invited_email: Mapped[str] = mapped_column(index=True)
    invited_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    status: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]


class AddressBookEntry(Base):
    """An address that a workspace gave a name."""

    __tablename__ = "address_book"
    __table_args__ = (UniqueConstraint("workspace_id", "address"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    name: Mapped[str]
    address: Mapped[str]
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
