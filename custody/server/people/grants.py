"""What else is checked where a role is given, or a permission is taken."""

from typing import Final

from sqlalchemy.orm import Session

from custody.schemas.permissions import PermissionName
from custody.server.errors import PermissionDenied
from custody.server.limits.stored import Policies
from custody.server.people.staff import permissions_of
from custody.server.rules.limits import in_btc, is_within
from custody.server.rules.roles import Permissions
from custody.server.store.models import RoleRow

# Of a forced change, in an `Event`.
SHORT: Final = "[; too few signers are left in vault {short_vaults}]"
SAYS_SHORT: Final = "[; too few signers are left in {short_vaults}]"


# Roles with one of these spend a limit.
SPENDING: Final = frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_INIT})


def require_within_limits(
    db: Session, policies: Policies, role_id: int, giver_role_id: int, held: Permissions
) -> None:
    """Checks every act that gives a member a role. ``held``: the permissions of the giver's role.

    Raises PermissionDenied, and PolicyUnavailable where the limits cannot be compared.
    """
    if is_within_limits(db, policies, role_id, giver_role_id, held):
        return
    given, own = (policies.of(db.get_one(RoleRow, each)) for each in (role_id, giver_role_id))
    raise PermissionDenied(
        f"This role may move {in_btc(given.limit)} BTC a {given.cycle.in_words}, yours "
        f"{in_btc(own.limit)} BTC a "
        f"{own.cycle.in_words}: only a member with {PermissionName.MANAGE_ROLE} may give it."
    )


def is_within_limits(
    db: Session, policies: Policies, role_id: int, giver_role_id: int, held: Permissions
) -> bool:
    """Raises PolicyUnavailable."""
    if PermissionName.MANAGE_ROLE in held or not permissions_of(db, role_id) & SPENDING:
        return True
    given, own = (policies.of(db.get_one(RoleRow, each)) for each in (role_id, giver_role_id))
    return is_within(given, own)
