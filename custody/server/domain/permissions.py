"""The seven permissions, their wire ids, and the roles that a new workspace starts with."""

from dataclasses import dataclass

from custody.schemas.users import PermissionName
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


# All there will ever be: the vaults' own limits bound an administrator, until somebody sets a smaller one.
ADMINISTRATOR = RoleTemplate("Administrator", "Runs the workspace", EVERY_PERMISSION, MAX_MONEY)
SIGNER = RoleTemplate(
    "Signer",
    "Approves movements",
    frozenset({PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES}),
    Sats(0),
)
FIRST_ROLES = (ADMINISTRATOR, SIGNER)


def permissions_not_held(
    wanted: frozenset[PermissionName], held: frozenset[PermissionName]
) -> frozenset[PermissionName]:
    """What of ``wanted`` may not be granted: nobody grants what they do not hold (P26)."""
    return wanted - held
