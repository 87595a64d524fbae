"""Spending limits of roles and vaults."""

from custody.schemas.limits import (
    CheckRoleQuery,
    CheckVaultQuery,
    LimitCheck,
    LimitError,
    MyLimits,
    RoleLimit,
    RoleQuery,
    UpdateRolePoliciesRequest,
    UpdateVaultRequest,
    VaultLimits,
    VaultQuery,
)
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import PolicyUnavailable
from custody.server.web.endpoint import Call, Endpoint, Unit

ROLE_MANAGERS = frozenset({PermissionName.MANAGE_ROLE})
VAULT_MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
VAULT_READERS = VAULT_MANAGERS | {
    PermissionName.PAYMENT_INIT,
    PermissionName.PAYMENT_APPROVE,
    PermissionName.VIEW_BALANCES,
}
ANY_MEMBER: frozenset[PermissionName] = frozenset()


def update_role_policies(call: Call[UpdateRolePoliciesRequest]) -> RoleLimit:
    """Replaces what each member who holds the role may move in a cycle; counts from now on. Pending proposals stay."""
    return call.services.limits.replace_of_role(call.db, call.caller, call.access, call.body)


def get_role_limit(call: Call[RoleQuery]) -> RoleLimit:
    """A role's limit and cycle."""
    return call.services.limits.of_role(call.db, call.access, call.body.role_id)


def check_user_role_limit(call: Call[CheckRoleQuery]) -> LimitCheck:
    """Whether an amount, fee included, fits what is left of a member's role limit. Reserves nothing."""
    return LimitCheck(success=call.services.limits.fits_role(call.db, call.access, call.body))


def get_my_limits(call: Call[WorkspaceQuery]) -> MyLimits:
    """The caller's own limit in the workspace, and what is used of it in this cycle."""
    return call.services.limits.of_caller(call.db, call.caller, call.access)


def update_vault(call: Call[UpdateVaultRequest]) -> VaultLimits:
    """Replaces a vault's limit and cycle; counts for the next movement. Pending proposals stay."""
    return call.services.limits.replace_of_vault(call.db, call.caller, call.access, call.body)


def get_vault_limits(call: Call[VaultQuery]) -> VaultLimits | LimitError:
    """A vault's limit and what left in this cycle, or why they cannot be told."""
    return call.services.limits.of_vault(call.db, call.access, call.body.vault_id)


def check_vault_limit(call: Call[CheckVaultQuery]) -> LimitCheck:
    """Whether a movement of an amount, fee included, fits the vault's limit. Reserves nothing."""
    return LimitCheck(success=call.services.limits.fits_vault(call.db, call.access, call.body))


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/update-role-policies",
        update_role_policies,
        RoleLimit,
        ROLE_MANAGERS,
        Unit.WRITE,
        UpdateRolePoliciesRequest,
        refuses=(PolicyUnavailable,),
    ),
    Endpoint(
        "GET",
        "/api/v1/get-role-limit",
        get_role_limit,
        RoleLimit,
        ROLE_MANAGERS,
        Unit.READ,
        RoleQuery,
        refuses=(PolicyUnavailable,),
    ),
    Endpoint(
        "GET",
        "/api/v1/check-user-role-limit",
        check_user_role_limit,
        LimitCheck,
        ROLE_MANAGERS,
        Unit.READ,
        CheckRoleQuery,
        refuses=(PolicyUnavailable,),
    ),
    Endpoint(
        "GET",
        "/api/v1/get-my-limits",
        get_my_limits,
        MyLimits,
        ANY_MEMBER,
        Unit.READ,
        WorkspaceQuery,
        refuses=(PolicyUnavailable,),
    ),
    Endpoint(
        "POST",
        "/api/v1/update-vault",
        update_vault,
        VaultLimits,
        VAULT_MANAGERS,
        Unit.WRITE,
        UpdateVaultRequest,
        refuses=(PolicyUnavailable,),
    ),
    Endpoint(
        "GET",
        "/api/v1/get-vault-limits",
        get_vault_limits,
        VaultLimits | LimitError,
        VAULT_READERS,
        Unit.READ,
        VaultQuery,
    ),
    Endpoint(
        "GET",
        "/api/v1/check-vault-limit",
        check_vault_limit,
        LimitCheck,
        VAULT_READERS,
        Unit.READ,
        CheckVaultQuery,
        refuses=(PolicyUnavailable,),
    ),
)
