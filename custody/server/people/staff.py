"""The stored roles and members of a workspace, and what is checked where a role is given. Those of other
workspaces are treated as missing (P24).
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, ScalarSelect, Select, func, select
from sqlalchemy.orm import Session

from custody.common.text import bounds, btc
from custody.schemas import users as wire
from custody.schemas.call import PermissionName
from custody.schemas.users import InvitationStatus
from custody.server.errors import LastAdmin, NotFound, PermissionDenied
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.limits import Cycle, SpendingPolicy, is_within
from custody.server.rules.roles import (
    EVERY_PERMISSION,
    PERMISSION_UIDS,
    Permissions,
    RoleTemplate,
    Staff,
    require_grantable,
)
from custody.server.shown import shape_of
from custody.server.store.models import InvitationRow, MembershipRow, RolePermissionRow, RoleRow, WorkspaceRow

if TYPE_CHECKING:
    from custody.server.limits.stored import Policies

FIRST_CYCLE: Final = Cycle("M", 1)
# Roles with one of these spend a limit.
SPENDING: Final = frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_INIT})


def staff_of(db: Session, workspace_id: int) -> Staff:
    """The role of every member, for rules about the workspace as a whole."""
    granted: dict[int, set[PermissionName]] = defaultdict(set)
    rows = (
        select(RoleRow.id, RolePermissionRow.permission)
        .outerjoin(RolePermissionRow, RolePermissionRow.role_id == RoleRow.id)
        .where(RoleRow.workspace_id == workspace_id)
    )
    for role_id, permission in db.execute(rows):
        granted[role_id] |= {PermissionName(permission)} if permission else set()
    places = select(MembershipRow.user_id, MembershipRow.role_id).where(
        MembershipRow.workspace_id == workspace_id
    )
    return Staff(
        roles={role_id: frozenset(permissions) for role_id, permissions in granted.items()},
        members=dict(db.execute(places).all()),
    )


def require_owner(db: Session, workspace_id: int, before: Staff, after: Staff) -> None:
    """An organisation keeps an owner: a member with all permissions in its first workspace. Raises
    LastAdmin.
    """
    if not before.has_owner or after.has_owner:
        return
    first = first_workspace(db.get_one(WorkspaceRow, workspace_id).organisation_id)
    elsewhere = (
        select(MembershipRow.id)
        .join(RoleRow, RoleRow.id == MembershipRow.role_id)
        .join(RolePermissionRow, RolePermissionRow.role_id == RoleRow.id)
        .where(RoleRow.workspace_id == first, RoleRow.workspace_id != workspace_id)
        .group_by(MembershipRow.id)
        .having(func.count() == len(EVERY_PERMISSION))
    )
    if db.scalars(elsewhere.limit(1)).first() is None:
        raise LastAdmin(
            "No member of the organisation's first workspace would hold all seven permissions any more."
        )


def first_workspace(organisation_id: int) -> "ScalarSelect[int]":
    """The oldest workspace. Each later one belongs to its maker alone at first, so its roles decide nothing
    for the organisation.
    """
    query = select(func.min(WorkspaceRow.id)).where(WorkspaceRow.organisation_id == organisation_id)
    return query.scalar_subquery()


def role_of_first(db: Session, organisation_id: int, role_id: int) -> RoleRow | None:
    """The role, where it is of the first workspace."""
    query = select(RoleRow).where(
        RoleRow.id == role_id, RoleRow.workspace_id == first_workspace(organisation_id)
    )
    return db.scalars(query).one_or_none()


def is_owner_of(db: Session, organisation_id: int, user_id: int) -> bool:
    """Whether they hold all seven permissions in the organisation's first workspace."""
    first = MembershipRow.workspace_id == first_workspace(organisation_id)
    role_id = db.scalar(select(MembershipRow.role_id).where(MembershipRow.user_id == user_id, first))
    return role_id is not None and permissions_of(db, role_id) == EVERY_PERMISSION


def require_owner_of(db: Session, organisation_id: int, user_id: int) -> None:
    """Raises PermissionDenied."""
    if not is_owner_of(db, organisation_id, user_id):
        raise PermissionDenied(
            "Only a member with all seven permissions in the organisation's first workspace may do this."
        )


def permissions_of(db: Session, role_id: int) -> Permissions:
    query = select(RolePermissionRow.permission).where(RolePermissionRow.role_id == role_id)
    return frozenset(PermissionName(name) for name in db.scalars(query))


def store_role(
    db: Session, now: datetime, workspace_id: int, template: RoleTemplate, cycle: Cycle = FIRST_CYCLE
) -> RoleRow:
    role = RoleRow(
        workspace_id=workspace_id,
        name=template.name,
        description=template.description,
        limit_sats=template.limit,
        cycle_period=cycle.period,
        cycle_day=cycle.day,
        created_at=now,
        updated_at=now,
    )
    db.add(role)
    db.flush()
    db.add_all(RolePermissionRow(role_id=role.id, permission=name.value) for name in template.permissions)
    db.flush()
    return role


def require_may_give(
    db: Session, policies: "Policies", access: WorkspaceAccess, role_id: int, granted: Permissions
) -> None:
    """Checks every act that gives a member a role. ``access``: the giver's; ``granted``: the role's.

    Raises PermissionDenied, and PolicyUnavailable where the limits cannot be compared.
    """
    require_grantable(granted, access.permissions)
    if PermissionName.MANAGE_ROLE in access.permissions or not granted & SPENDING:
        return
    given, own = (policies.of(db.get_one(RoleRow, each)) for each in (role_id, access.role_id))
    if not is_within(given, own):
        raise PermissionDenied(
            f"This role may move {_in_words(given)}, yours {_in_words(own)}: only a member with "
            f"{PermissionName.MANAGE_ROLE} may give a higher limit, or one of another cycle."
        )


def _in_words(policy: SpendingPolicy) -> str:
    cycle = policy.cycle
    return f"{btc(policy.limit)} BTC {bounds(per_cycle=True, period=cycle.period, day=cycle.day)}"


def membership_of(db: Session, user_id: int, workspace_id: int) -> MembershipRow | None:
    query = select(MembershipRow).where(
        MembershipRow.workspace_id == workspace_id, MembershipRow.user_id == user_id
    )
    return db.scalars(query).one_or_none()


def organisations_of(user_id: int) -> Select[int]:
    """Of the workspaces that they are members of."""
    is_place = MembershipRow.workspace_id == WorkspaceRow.id
    joined = select(WorkspaceRow.organisation_id).join(MembershipRow, is_place)
    return joined.where(MembershipRow.user_id == user_id)


def membership_in(db: Session, access: WorkspaceAccess, user_id: int) -> MembershipRow:
    """Raises NotFound."""
    membership = membership_of(db, user_id, access.workspace_id)
    if membership is None:
        raise NotFound("There is no such member in this workspace.")
    return membership


def waiting_for_answer(of: ColumnElement[bool], now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Of invitations."""
    return of, InvitationRow.status == InvitationStatus.PENDING.value, InvitationRow.expires_at > now


def count_members(db: Session, workspace_id: int) -> dict[int, int]:
    """The number of members by role, for roles that have any."""
    query = select(MembershipRow.role_id, func.count()).where(MembershipRow.workspace_id == workspace_id)
    return dict(db.execute(query.group_by(MembershipRow.role_id)).all())


def role_shapes(db: Session, roles: Iterable[RoleRow]) -> dict[int, wire.Role]:
    """By role id."""
    by_id = {role.id: role for role in roles}
    granted: dict[int, list[PermissionName]] = {role_id: [] for role_id in by_id}
    for row in db.scalars(select(RolePermissionRow).where(RolePermissionRow.role_id.in_(by_id))):
        granted[row.role_id].append(PermissionName(row.permission))
    return {role.id: role_shape(role, granted[role.id]) for role in by_id.values()}


def role_shape(role: RoleRow, granted: Iterable[PermissionName]) -> wire.Role:
    return shape_of(
        wire.Role,
        role,
        role_id=role.id,
        perm=[
            wire.Permission(uid=PERMISSION_UIDS[name], rule_name=name)
            for name in sorted(granted, key=PERMISSION_UIDS.__getitem__)
        ],
    )
