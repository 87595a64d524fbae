"""The roles and members of a workspace as they are stored. Another workspace's are answered as ones that never were (P24)."""

from collections import defaultdict

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.users import PermissionName
from custody.server.domain.caller import WorkspaceAccess
from custody.server.domain.errors import NotFound
from custody.server.domain.roles import Permissions, Staff
from custody.server.store.models import Membership, Role, RolePermission


def staff_of(db: Session, workspace_id: int) -> Staff:
    """Everybody's place, for rules about the workspace as a whole."""
    granted: dict[int, set[PermissionName]] = defaultdict(set)
    rows = (
        select(Role.id, RolePermission.permission)
        .outerjoin(RolePermission, RolePermission.role_id == Role.id)
        .where(Role.workspace_id == workspace_id)
    )
    for role_id, permission in db.execute(rows):
        granted[role_id] |= {PermissionName(permission)} if permission else set()
    places = select(Membership.user_id, Membership.role_id).where(Membership.workspace_id == workspace_id)
    return Staff(
        roles={role_id: frozenset(permissions) for role_id, permissions in granted.items()},
        members=dict(db.execute(places).all()),
    )


def permissions_of(db: Session, role_id: int) -> Permissions:
    query = select(RolePermission.permission).where(RolePermission.role_id == role_id)
    return frozenset(PermissionName(name) for name in db.scalars(query))


def role_in(db: Session, access: WorkspaceAccess, role_id: int) -> Role:
    """Raises NotFound."""
    role = db.get(Role, role_id)
    if role is None or role.workspace_id != access.workspace_id:
        raise NotFound("There is no such role in this workspace.")
    return role


def place_in(db: Session, access: WorkspaceAccess, user_id: int) -> Membership:
    """Raises NotFound."""
    place = db.scalars(
        select(Membership).where(
            Membership.workspace_id == access.workspace_id, Membership.user_id == user_id
        )
    ).one_or_none()
    if place is None:
        raise NotFound("There is no such member in this workspace.")
    return place


def count_members(db: Session, workspace_id: int) -> dict[int, int]:
    """By role, of every role that somebody holds."""
    query = select(Membership.role_id, func.count()).where(Membership.workspace_id == workspace_id)
    return dict(db.execute(query.group_by(Membership.role_id)).all())
