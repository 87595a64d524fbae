"""What a role may allow, and what a caller needs where a call names no workspace."""

from enum import Enum, StrEnum
from typing import Final


class PermissionName(StrEnum):
    MANAGE_WORKSPACE = "MANAGE_WORKSPACE"
    PAYMENT_INIT = "PAYMENT_INIT"
    PAYMENT_APPROVE = "PAYMENT_APPROVE"
    VIEW_BALANCES = "VIEW_BALANCES"
    MANAGE_ROLE = "MANAGE_ROLE"
    MANAGE_USERS = "MANAGE_USERS"
    VIEW_LOGS = "VIEW_LOGS"


class Auth(Enum):
    """What a caller needs where the call names no workspace."""

    OPEN = "open"  # nothing: sign-in itself
    SIGNED_IN = "signed in"  # a session: the caller's own records


ANY_MEMBER: Final[frozenset[PermissionName]] = frozenset()
WORKSPACE_MANAGERS: Final = frozenset({PermissionName.MANAGE_WORKSPACE})
USER_MANAGERS: Final = frozenset({PermissionName.MANAGE_USERS})
ROLE_MANAGERS: Final = frozenset({PermissionName.MANAGE_ROLE})
# Any of these shows what a workspace's vaults hold.
VAULT_VIEWERS: Final = frozenset(
    {PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES}
)
# And PAYMENT_INIT, which vaults there are.
VAULT_READERS: Final = VAULT_VIEWERS | {PermissionName.PAYMENT_INIT}
