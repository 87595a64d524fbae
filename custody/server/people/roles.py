"""Roles of a workspace: creating and deleting them, and their permissions.

`rules.roles` decides which permissions a role may get, and who may change it. Write transactions are
serialised, so a check still holds when its change is written: of two administrators who remove each other's
rights at once, one fails (P27).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import delete, func, select

from custody.common.text import count, name_key
from custody.schemas import roles as wire
from custody.schemas.call import PermissionName
from custody.schemas.common import Done, Listed, WorkspaceQuery
from custody.server.calls import Ctx, serves
from custody.server.errors import PolicyUnavailable, StateConflict
from custody.server.keys.quorums import SHORT, left_short_by
from custody.server.limits.calls import policy_fields, read_amount
from custody.server.people import staff
from custody.server.rules.audit import Event
from custody.server.rules.limits import Cycle, SpendingPolicy, policy_facts
from custody.server.rules.roles import (
    MAX_ROLES,
    RoleTemplate,
    require_administrators,
    require_grantable,
    require_reach,
)
from custody.server.shown import shown
from custody.server.store.models import InvitationRow, MembershipRow, RolePermissionRow, RoleRow, VaultRow

CREATED = Event(
    "ROLE_CREATED", "made the role {name}, whose members each pay at most {limit}: {rights} // role {role}"
)
RENAMED = Event("ROLE_UPDATED", "renamed the role {name} to {new_name} // role {role}")
DESCRIBED = Event("ROLE_UPDATED", "changed the description of the role {role}")
DELETED = Event("ROLE_DELETED", "deleted the role {name} // role {role}")
ADDED = Event("PERMISSION_ADDED", "gave the role {role} the permission: {rights}")
REMOVED = Event("PERMISSION_REMOVED", "took a permission from the role {role}: {rights}" + SHORT)


@serves(wire.ROLES)
def roles(ctx: Ctx, _: WorkspaceQuery) -> Listed[wire.RoleDetails]:
    """The oldest first."""
    return shown(_here(ctx), partial(_details, ctx), "RoleId", lambda role: role.id)


@serves(wire.CREATE_ROLE)
def create_role(ctx: Ctx, request: wire.CreateRoleRequest) -> wire.RoleDetails:
    permissions = frozenset(request.permissions)
    require_grantable(permissions, ctx.access.permissions)
    present = _here(ctx)
    if len(present) >= MAX_ROLES:
        raise StateConflict(
            f"The workspace has {MAX_ROLES} roles, the most that it can have.",
            hint="Delete roles that no member holds.",
        )
    _require_free_name(present, request.name)
    amount = read_amount("transaction_limit", request.transaction_limit)
    limit = SpendingPolicy(amount, Cycle(request.cycle_period, request.cycle_day))
    template = RoleTemplate(request.name, request.description, permissions, limit.limit)
    role = staff.store_role(ctx.db, ctx.now, ctx.access.workspace_id, template, limit.cycle)
    facts = {"name": role.name, "rights": sorted(permissions), "limit": policy_facts(limit)}
    return _changed(ctx, role, CREATED, **facts)


@serves(wire.UPDATE_ROLE)
def update_role(ctx: Ctx, request: wire.UpdateRoleRequest) -> wire.RoleDetails:
    role = _in_reach(ctx, request.role_id)
    name = role.name if request.name is None else request.name
    description = role.description if request.description is None else request.description
    if (name, description) == (role.name, role.description):
        return _details(ctx, [role])[0]
    _require_free_name([other for other in _here(ctx) if other is not role], name)
    before, role.name, role.description = role.name, name, description
    if name == before:
        return _changed(ctx, role, DESCRIBED)
    return _changed(ctx, role, RENAMED, name=before, new_name=name)


@serves(wire.DELETE_ROLE)
def delete_role(ctx: Ctx, request: wire.RoleRequest) -> Done:
    role = _in_reach(ctx, request.role_id)
    members = staff.count_members(ctx.db, ctx.access.workspace_id).get(role.id, 0)
    offers = _open_invitations(ctx, role)
    if members or offers:
        raise StateConflict(
            f"The role is held by {count(members, 'member', 'members')} and offered by "
            f"{count(offers, 'open invitation', 'open invitations')}.",
            hint="Give its members another role and revoke its open invitations first.",
        )
    here = select(VaultRow.approvers).where(VaultRow.workspace_id == ctx.access.workspace_id)
    vaults = sum(f"role:{role.id}" in asked for asked in ctx.db.scalars(here))
    if vaults:
        raise StateConflict(
            f"{count(vaults, 'vault asks', 'vaults ask')} for an approval from this role.",
            hint="Change the controls of these vaults first.",
        )
    ctx.db.execute(delete(RolePermissionRow).where(RolePermissionRow.role_id == role.id))
    ctx.db.delete(role)
    ctx.db.flush()
    ctx.event(DELETED, role=role.id, name=role.name)
    return Done()


@serves(wire.ADD_PERMISSION_TO_ROLE)
def add_permission_to_role(ctx: Ctx, request: wire.AddPermissionRequest) -> wire.RoleDetails:
    role = _in_reach(ctx, request.role_id)
    require_grantable(frozenset({request.rule_name}), ctx.access.permissions)
    if request.rule_name in staff.permissions_of(ctx.db, role.id):
        return _details(ctx, [role])[0]
    ctx.db.add(RolePermissionRow(role_id=role.id, permission=request.rule_name.value))
    return _changed(ctx, role, ADDED, rights=[request.rule_name])


@serves(wire.REMOVE_PERMISSION_FROM_ROLE)
def remove_permission_from_role(ctx: Ctx, request: wire.RemovePermissionRequest) -> wire.RoleDetails:
    """Takes effect at once for every member with the role (P23)."""
    role = _in_reach(ctx, request.role_id)
    before = staff.staff_of(ctx.db, ctx.access.workspace_id)
    carried = before.roles[role.id]
    if request.rule_name not in carried:
        return _details(ctx, [role])[0]
    after = before.with_role(role.id, carried - {request.rule_name})
    require_administrators(before, after)
    staff.require_owner(ctx.db, ctx.access.workspace_id, before, after)
    short, lost = list[str](), MembershipRow.role_id == role.id
    if request.rule_name is PermissionName.PAYMENT_APPROVE:
        short = left_short_by(ctx.db, ctx.now, ctx.caller.user_id, lost, is_forced=request.force)
    ctx.db.delete(ctx.db.get_one(RolePermissionRow, (role.id, request.rule_name.value)))
    return _changed(ctx, role, REMOVED, rights=[request.rule_name], short_vaults=short)


def _here(ctx: Ctx) -> list[RoleRow]:
    query = select(RoleRow).where(RoleRow.workspace_id == ctx.access.workspace_id).order_by(RoleRow.id)
    return list(ctx.db.scalars(query))


def _in_reach(ctx: Ctx, role_id: int) -> RoleRow:
    """Raises NotFound, PermissionDenied."""
    role = ctx.find(RoleRow, role_id, "role")
    require_reach(staff.permissions_of(ctx.db, role.id), ctx.access.permissions)
    return role


def _require_free_name(others: Sequence[RoleRow], name: str) -> None:
    """Names that look the same count as equal: people pick a role by its name."""
    for role in others:
        if name_key(role.name) == name_key(name):
            raise StateConflict(
                f"Role {role.id} has this name already.",
                hint="Change the role that is there, or choose another name.",
            )


def _open_invitations(ctx: Ctx, role: RoleRow) -> int:
    offers = staff.waiting_for_answer(InvitationRow.role_id == role.id, ctx.now)
    return ctx.db.scalar(select(func.count()).where(*offers)) or 0


def _changed(ctx: Ctx, changed: RoleRow, event: Event, **facts: Any) -> wire.RoleDetails:
    changed.updated_at = ctx.now
    ctx.db.flush()
    details = _details(ctx, [changed])[0]
    ctx.event(event, role=changed.id, **facts)
    return details


def _details(ctx: Ctx, roles: Sequence[RoleRow]) -> list[wire.RoleDetails]:
    """In the given order. Where policies cannot be read, the records have ``limit_error`` instead."""
    shapes, members = staff.role_shapes(ctx.db, roles), staff.count_members(ctx.db, ctx.access.workspace_id)
    return [
        wire.RoleDetails(
            **dict(shapes[role.id]),
            workspace_id=role.workspace_id,
            members=members.get(role.id, 0),
            **_limit(ctx, role),
        )
        for role in roles
    ]


def _limit(ctx: Ctx, role: RoleRow) -> Mapping[str, Any]:
    try:
        return policy_fields("transaction_limit", ctx.tools.policies.of(role))
    except PolicyUnavailable as error:
        return {"limit_error": error.detail}
