"""Permissions and roles: members grant only permissions that they hold, and the last administrator stays.

By changing roles and members, a member must not be able to do more than they may do already (P26).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from custody.schemas.call import PermissionName
from custody.server.errors import LastAdmin, PermissionDenied
from multisig.units import MAX_MONEY, Sats

# ``UID`` of a permission in a role. Numbers are never given to another permission.
PERMISSION_UIDS: dict[PermissionName, int] = {
    PermissionName.MANAGE_WORKSPACE: 1,
    PermissionName.PAYMENT_INIT: 2,
    PermissionName.PAYMENT_APPROVE: 3,
    PermissionName.VIEW_BALANCES: 4,
    PermissionName.MANAGE_ROLE: 5,
    PermissionName.MANAGE_USERS: 6,
    PermissionName.VIEW_LOGS: 7,
}
EVERY_PERMISSION = frozenset(PermissionName)


@dataclass(frozen=True)
class RoleTemplate:
    name: str
    description: str
    permissions: frozenset[PermissionName]
    # What each member may move in a cycle.
    limit: Sats


# The limit is all bitcoin: only the vaults' limits bound an administrator, until a smaller one is set.
ADMINISTRATOR = RoleTemplate("Administrator", "Runs the workspace", EVERY_PERMISSION, MAX_MONEY)
SIGNER = RoleTemplate(
    "Signer",
    "Approves movements",
    frozenset({PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES}),
    Sats(0),
)


Permissions = frozenset[PermissionName]

# No member could grant these once no member holds them: the operator would have to repair the database.
KEPT = (PermissionName.MANAGE_WORKSPACE, PermissionName.MANAGE_ROLE, PermissionName.MANAGE_USERS)
# People pick a role from the whole list.
MAX_ROLES = 100


@dataclass(frozen=True)
class Staff:
    """The permissions of each role of a workspace, and the role of each member, by id."""

    roles: Mapping[int, Permissions]
    members: Mapping[int, int]

    def without(self, user_id: int) -> "Staff":
        return replace(self, members={user: role for user, role in self.members.items() if user != user_id})

    def with_member(self, user_id: int, role_id: int) -> "Staff":
        return replace(self, members={**self.members, user_id: role_id})

    def with_role(self, role_id: int, permissions: Permissions) -> "Staff":
        return replace(self, roles={**self.roles, role_id: permissions})

    @property
    def held(self) -> Permissions:
        """The permissions that at least one member holds."""
        return frozenset[PermissionName]().union(*(self.roles[role] for role in self.members.values()))

    @property
    def has_owner(self) -> bool:
        """Whether a member holds every permission."""
        return any(self.roles[role] == EVERY_PERMISSION for role in self.members.values())


def require_grantable(granted: Permissions, held: Permissions) -> None:
    """Checks every change that gives permissions: a role offered, a role changed, a permission added to one.

    Raises PermissionDenied.
    """
    if missing := granted - held:
        raise PermissionDenied(f"You cannot grant what you do not hold: {in_words(missing)}.")


def require_reach(carried: Permissions, held: Permissions) -> None:
    """Checks every change of a role or a membership: a caller may not change a role with more permissions.

    Raises PermissionDenied.
    """
    if missing := carried - held:
        raise PermissionDenied(
            f"This role carries {in_words(missing)}, which yours does not: only a member who holds it may "
            "change that."
        )


def require_administrators(before: Staff, after: Staff) -> None:
    """Checks that some member still holds each permission of KEPT that one holds now (P27). Raises
    LastAdmin.
    """
    gone = (before.held - after.held).intersection(KEPT)
    if gone:
        raise LastAdmin(f"No member of the workspace would hold {in_words(gone)} any more.")


def in_words(permissions: Iterable[PermissionName]) -> str:
    return ", ".join(sorted(permissions))
