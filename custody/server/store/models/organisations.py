"""Organisations: their workspaces with roles, members, invitations and the address book; requests for one;
the rule about second persons, and the changes that wait for one.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base, only_where
from multisig import ends_of

_PENDING = "status = 'pending'"


class OrganisationRow(Base):
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    created_at: Mapped[datetime]


class WorkspaceRow(Base):
    """``network`` is the API's name (mainnet or testnet); ``chain`` is the actual chain.

    ``key_check_months``: how often each signer's device has to sign something; 0 where it need not.
    """

    __table_args__ = (
        UniqueConstraint("organisation_id", "name"),
        CheckConstraint("network IN ('mainnet', 'testnet')", name="network"),
        CheckConstraint("(network = 'mainnet') = (chain = 'mainnet')", name="chain_of_network"),
        CheckConstraint("chain IN ('mainnet', 'testnet4', 'signet', 'regtest')", name="chain"),
        CheckConstraint("key_check_months BETWEEN 0 AND 24", name="key_check_months"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"), index=True)
    name: Mapped[str]
    description: Mapped[str]
    network: Mapped[str]
    chain: Mapped[str]
    key_check_months: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]


class RoleRow(Base):
    """A named set of permissions in one workspace, with a spending limit for each member who holds it.

    A deleted role's id is never reused: the audit log and decided invitations still name it.
    """

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


class RolePermissionRow(Base):
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True)
    permission: Mapped[str] = mapped_column(primary_key=True)


class MembershipRow(Base):
    """A member's one role in one workspace. The database itself refuses another workspace's role."""

    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id"),
        ForeignKeyConstraint(["role_id", "workspace_id"], ["roles.id", "roles.workspace_id"]),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    role_id: Mapped[int]
    created_at: Mapped[datetime]


class InvitationRow(Base):
    """An offer of a role to an address. An address has at most one open offer for each workspace. ``role_id``
    is not a foreign key: a decided invitation outlives its role.
    """

    __table_args__ = (
        CheckConstraint("status IN ('pending', 'accepted', 'declined', 'expired', 'revoked')", name="status"),
        # For the sweep of expired invitations, several times a second, and for an organisation's rate of
        # invitations.
        Index(None, "status", "expires_at"),
        Index(None, "organisation_id", "created_at"),
        Index("uq_invitations_pending", "workspace_id", "invited_email", unique=True, **only_where(_PENDING)),
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


def _ends(context: DefaultExecutionContext) -> str:
    return ends_of(context.get_current_parameters()["address"])  # type: ignore[no-untyped-call]


class AddressBookEntryRow(Base):
    """An address with a name, in a workspace. ``name_key``: the key by which names are unique. ``ends``: of
    the address, for finding what only resembles it.
    """

    __tablename__ = "address_book"
    __table_args__ = (
        UniqueConstraint("workspace_id", "address"),
        UniqueConstraint("workspace_id", "name_key"),
        Index(None, "workspace_id", "ends"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    name: Mapped[str]
    name_key: Mapped[str]
    address: Mapped[str]
    ends: Mapped[str] = mapped_column(default=_ends)
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]


class PayeeRow(Base):
    """An address that a payment with all its signatures pays."""

    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), primary_key=True)
    ends: Mapped[str] = mapped_column(primary_key=True, default=_ends)
    address: Mapped[str] = mapped_column(primary_key=True)


class OnboardingRequestRow(Base):
    """A request for an organisation with a first workspace; an operator decides."""

    __table_args__ = (
        CheckConstraint("status IN ('pending', 'approved', 'rejected')", name="status"),
        CheckConstraint("(created_org_id IS NOT NULL) = (status = 'approved')", name="created_org"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    requester_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    first_name: Mapped[str]
    last_name: Mapped[str]
    work_email: Mapped[str]
    messaging_platform: Mapped[str]
    messaging_handle: Mapped[str]
    monthly_volume: Mapped[str]
    referral_source: Mapped[str]
    referral_source_detail: Mapped[str | None]
    org_name: Mapped[str]
    workspace_name: Mapped[str]
    network: Mapped[str]
    status: Mapped[str] = mapped_column(index=True)
    review_note: Mapped[str | None]
    approved_by_email: Mapped[str | None]
    approved_at: Mapped[datetime | None]
    created_org_id: Mapped[int | None] = mapped_column(ForeignKey("organisations.id"))
    submitted_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class SecondPersonRuleRow(Base):
    """The rule is on for organisations with a row."""

    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"), primary_key=True)
    confirming_role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"))
    cooling_off_hours: Mapped[int]
    set_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    set_at: Mapped[datetime]


class PendingChangeRow(Base):
    """The recorded request of a call: ``path`` and ``body``. Kept after it was decided."""

    __table_args__ = (
        Index("ix_pending_changes_by_age", "organisation_id", "status", "asked_at"),
        # For the sweep of expired changes, several times a second.
        Index(None, "status", "expires_at"),
        CheckConstraint("status IN ('PENDING', 'APPLIED', 'DECLINED', 'EXPIRED')", name="status"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    organisation_id: Mapped[int] = mapped_column(ForeignKey("organisations.id"))
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    path: Mapped[str]
    body: Mapped[dict[str, Any]]
    status: Mapped[str]
    asked_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    asked_by_name: Mapped[str]
    asked_at: Mapped[datetime]
    not_before: Mapped[datetime]
    expires_at: Mapped[datetime]
    # As they were when it was decided, for those who read it afterwards.
    names: Mapped[dict[str, Any] | None]
    in_force: Mapped[dict[str, Any] | None]
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    decided_by_name: Mapped[str | None]
    decided_at: Mapped[datetime | None]
    reason: Mapped[str | None]
