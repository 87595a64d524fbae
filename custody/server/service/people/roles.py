"""Roles of a workspace: creating and deleting them, their permissions, and the limit that is given with one.

`domain.roles` decides which permissions a role may get, and who may change it. Write transactions are
serialised, so a check still holds when its change is written: of two administrators who remove each other's
rights at once, one fails (P27).
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.schemas import users
from custody.schemas.common import Listed
from custody.schemas.invitations import InvitationStatus
from custody.schemas.users import PermissionName
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import Invalid, PermissionDenied, PolicyUnavailable
from custody.server.domain.limits import Cycle, SpendingPolicy, in_btc, is_within, policy_words
from custody.server.domain.ports import Clock
from custody.server.domain.roles import (
    MAX_ROLES,
    Permissions,
    RoleExists,
    RoleInUse,
    TooManyRoles,
    in_words,
    require_administrators,
    require_grantable,
    require_reach,
)
from custody.server.service.audit.log import AuditLog
from custody.server.service.keys.quorums import require_quorums, vaults_left_short
from custody.server.service.limits.limits import PolicyStore
from custody.server.service.people.staff import (
    count_members,
    permissions_of,
    require_owner,
    role_in,
    role_shapes,
    staff_of,
)
from custody.server.service.shown import shown
from custody.server.store.models import Invitation, Role, RolePermission, Vault
from custody.text import count, name_key
from multisig import InvalidAmount, Sats, parse_btc


class Roles:
    def __init__(self, clock: Clock, audit: AuditLog, policies: PolicyStore) -> None:
        self._clock = clock
        self._audit = audit
        self._policies = policies

    def detailed(self, db: Session, access: WorkspaceAccess) -> Listed[users.RoleDetails]:
        """The workspace's roles, the oldest first."""
        return shown(
            _roles_of(db, access),
            lambda some: role_details(db, self._policies, access.workspace_id, some),
            "RoleId",
            lambda role: role.id,
        )

    def create(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: users.CreateRoleRequest
    ) -> users.RoleDetails:
        """Raises PermissionDenied (P26), RoleExists, TooManyRoles, Invalid (the limit)."""
        permissions = frozenset(request.permissions)
        require_grantable(permissions, access.permissions)
        present = _roles_of(db, access)
        if len(present) >= MAX_ROLES:
            raise TooManyRoles(f"The workspace has {MAX_ROLES} roles, the most that it can have.")
        _require_free_name(present, request.name)
        role = self._insert(db, access, request, _amount(request.transaction_limit))
        db.add_all(RolePermission(role_id=role.id, permission=name.value) for name in permissions)
        carries = in_words(permissions) or "nothing"
        limit = SpendingPolicy(Sats(role.limit_sats), Cycle(request.cycle_period, request.cycle_day))
        what = f"named {role.name}, with {carries}; {policy_words(limit)}"
        return self._changed(db, caller, access, "ROLE_CREATED", role, what)

    def update(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: users.UpdateRoleRequest
    ) -> users.RoleDetails:
        """The name and the description. Raises NotFound, PermissionDenied, RoleExists."""
        role = _role_in_reach(db, access, request.role_id)
        name = role.name if request.name is None else request.name
        description = role.description if request.description is None else request.description
        if (name, description) == (role.name, role.description):
            return self._shown(db, role)
        _require_free_name([other for other in _roles_of(db, access) if other is not role], name)
        what = f"named {role.name}; now {name}" if name != role.name else "described anew"
        role.name, role.description = name, description
        return self._changed(db, caller, access, "ROLE_UPDATED", role, what)

    def delete(self, db: Session, caller: Caller, access: WorkspaceAccess, role_id: int) -> None:
        """Raises NotFound, PermissionDenied, RoleInUse (a member holds it, or an open invitation offers
        it).
        """
        role = _role_in_reach(db, access, role_id)
        members = count_members(db, access.workspace_id).get(role.id, 0)
        offers = self._open_invitations(db, role)
        if members or offers:
            raise RoleInUse(
                f"The role is held by {count(members, 'member', 'members')} and offered by "
                f"{count(offers, 'open invitation', 'open invitations')}."
            )
        db.execute(delete(RolePermission).where(RolePermission.role_id == role.id))
        db.delete(role)
        db.flush()
        what = f"role {role.id}, named {role.name}"
        self._audit.record(db, caller, Category.PEOPLE, "ROLE_DELETED", what, access=access)

    def add_permission(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: users.AddPermissionRequest
    ) -> users.RoleDetails:
        """Idempotent. Raises NotFound, PermissionDenied (P26)."""
        role = _role_in_reach(db, access, request.role_id)
        require_grantable(frozenset({request.rule_name}), access.permissions)
        if request.rule_name in permissions_of(db, role.id):
            return self._shown(db, role)
        db.add(RolePermission(role_id=role.id, permission=request.rule_name.value))
        return self._changed(db, caller, access, "PERMISSION_ADDED", role, request.rule_name)

    def remove_permission(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: users.RemovePermissionRequest
    ) -> users.RoleDetails:
        """Takes effect at once for every member with the role (P23). Idempotent.

        Raises NotFound, PermissionDenied, LastAdmin (P27), VaultsLeftShort (unless forced).
        """
        role = _role_in_reach(db, access, request.role_id)
        before = staff_of(db, access.workspace_id)
        carried = before.roles[role.id]
        if request.rule_name not in carried:
            return self._shown(db, role)
        after = before.with_role(role.id, carried - {request.rule_name})
        require_administrators(before, after)
        require_owner(db, access.workspace_id, before, after)
        short = _left_short(db, role, request.rule_name)
        if not request.force:
            require_quorums(db, caller.user_id, short)
        db.delete(db.get_one(RolePermission, (role.id, request.rule_name.value)))
        what = request.rule_name + shortage(short)
        return self._changed(db, caller, access, "PERMISSION_REMOVED", role, what)

    def _insert(
        self, db: Session, access: WorkspaceAccess, request: users.CreateRoleRequest, limit: Sats
    ) -> Role:
        now = self._clock()
        role = Role(
            workspace_id=access.workspace_id,
            name=request.name,
            description=request.description,
            limit_sats=limit,
            cycle_period=request.cycle_period,
            cycle_day=request.cycle_day,
            created_at=now,
            updated_at=now,
        )
        db.add(role)
        db.flush()
        return role

    def _changed(
        self, db: Session, caller: Caller, access: WorkspaceAccess, action: str, role: Role, what: str
    ) -> users.RoleDetails:
        role.updated_at = self._clock()
        db.flush()
        shown = self._shown(db, role)
        self._audit.record(db, caller, Category.PEOPLE, action, f"role {role.id}, {what}", access=access)
        return shown

    def _shown(self, db: Session, role: Role) -> users.RoleDetails:
        return role_details(db, self._policies, role.workspace_id, [role])[0]

    def _open_invitations(self, db: Session, role: Role) -> int:
        query = select(func.count()).where(
            Invitation.role_id == role.id,
            Invitation.status == InvitationStatus.PENDING.value,
            Invitation.expires_at > self._clock(),
        )
        return db.scalar(query) or 0


def role_details(
    db: Session, policies: PolicyStore, workspace_id: int, roles: Sequence[Role]
) -> list[users.RoleDetails]:
    """In the given order. Where a policy cannot be read, the record has ``limit_error`` instead."""
    shapes, members = role_shapes(db, roles), count_members(db, workspace_id)
    return [
        users.RoleDetails(
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


def shortage(short: Sequence[Vault]) -> str:
    """The audit log's words for a forced change."""
    vaults = ", ".join(vault.id for vault in short)
    return f"; too few signers are left in vault {vaults}" if short else ""


def _left_short(db: Session, role: Role, permission: PermissionName) -> list[Vault]:
    is_approval = permission is PermissionName.PAYMENT_APPROVE
    return vaults_left_short(db, without_role=role.id) if is_approval else []


def _roles_of(db: Session, access: WorkspaceAccess) -> list[Role]:
    query = select(Role).where(Role.workspace_id == access.workspace_id).order_by(Role.id)
    return list(db.scalars(query))


def _role_in_reach(db: Session, access: WorkspaceAccess, role_id: int) -> Role:
    role = role_in(db, access, role_id)
    require_reach(permissions_of(db, role.id), access.permissions)
    return role


def _require_free_name(others: Sequence[Role], name: str) -> None:
    """Names that look the same count as equal: people pick a role by its name."""
    for role in others:
        if name_key(role.name) == name_key(name):
            raise RoleExists(f"Role {role.id} has this name already.")


def _amount(text: str) -> Sats:
    try:
        return parse_btc(text)
    except InvalidAmount as error:
        sentence = str(error)
        raise Invalid.at("/transaction_limit", sentence) from error


# Roles with one of these spend a limit.
SPENDING: Final = frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_INIT})


class LimitGrants:
    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies

    def require(self, db: Session, role_id: int, giver_role_id: int, held: Permissions) -> None:
        """Checks every act that gives a member a role. ``held``: the permissions of the giver's role.

        Raises PermissionDenied, and PolicyUnavailable where the limits cannot be compared.
        """
        if self.allow(db, role_id, giver_role_id, held):
            return
        given, own = self._policies.of_role(db, role_id), self._policies.of_role(db, giver_role_id)
        raise PermissionDenied(
            f"This role may move {in_btc(given.limit)} BTC a {given.cycle.in_words}, yours "
            f"{in_btc(own.limit)} BTC a "
            f"{own.cycle.in_words}: only a member with {PermissionName.MANAGE_ROLE} may give it."
        )

    def allow(self, db: Session, role_id: int, giver_role_id: int, held: Permissions) -> bool:
        """Raises PolicyUnavailable."""
        if PermissionName.MANAGE_ROLE in held or not permissions_of(db, role_id) & SPENDING:
            return True
        return is_within(self._policies.of_role(db, role_id), self._policies.of_role(db, giver_role_id))
