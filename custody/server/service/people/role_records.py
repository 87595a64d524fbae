"""Stored roles in their two shapes: as a member's record shows them, and with their policy."""

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import users as wire
from custody.schemas.roles import RoleDetails
from custody.schemas.users import PermissionName
from custody.server.domain.errors import PolicyUnavailable
from custody.server.domain.limits import in_btc
from custody.server.domain.roles import PERMISSION_UIDS
from custody.server.service.limits.policies import PolicyStore
from custody.server.service.people.staff import count_members
from custody.server.store.models import Role, RolePermission


def role_shapes(db: Session, roles: Iterable[Role]) -> dict[int, wire.Role]:
    """By id."""
    by_id = {role.id: role for role in roles}
    granted: dict[int, list[PermissionName]] = {role_id: [] for role_id in by_id}
    for row in db.scalars(select(RolePermission).where(RolePermission.role_id.in_(by_id))):
        granted[row.role_id].append(PermissionName(row.permission))
    return {role.id: _shape(role, granted[role.id]) for role in by_id.values()}


def role_details(
    db: Session, policies: PolicyStore, workspace_id: int, roles: Sequence[Role]
) -> list[RoleDetails]:
    """In the order given. Where the policies cannot be read, every record says so in their place."""
    shapes, members = role_shapes(db, roles), count_members(db, workspace_id)
    return [
        RoleDetails(
            **dict(shapes[role.id]),
            workspace_id=workspace_id,
            members=members.get(role.id, 0),
            **_policy(db, policies, role.id),
        )
        for role in roles
    ]


def _policy(db: Session, policies: PolicyStore, role_id: int) -> dict[str, str | int]:
    try:
        policy = policies.of_role(db, role_id)
    except PolicyUnavailable as error:
        return {"limit_error": error.detail}
    return {
        "transaction_limit": in_btc(policy.limit),
        "cycle_period": policy.cycle.period,
        "cycle_day": policy.cycle.day,
    }


def _shape(role: Role, granted: Iterable[PermissionName]) -> wire.Role:
    return wire.Role(
        role_id=role.id,
        name=role.name,
        description=role.description,
        perm=[
            wire.Permission(uid=PERMISSION_UIDS[name], rule_name=name)
            for name in sorted(granted, key=PERMISSION_UIDS.__getitem__)
        ],
    )
