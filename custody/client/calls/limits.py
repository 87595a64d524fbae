"""Spending limits of roles and vaults. Amounts are decimal strings in BTC."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import method
from custody.schemas.limits import (
    LimitCheck,
    LimitError,
    MyLimits,
    RoleLimit,
    UpdateRolePoliciesRequest,
    UpdateVaultRequest,
    VaultLimits,
)

_VAULT_LIMITS: TypeAdapter[VaultLimits | LimitError] = TypeAdapter(VaultLimits | LimitError)


class LimitCalls:
    @method
    @staticmethod
    def update_role_policies(core: Core, body: UpdateRolePoliciesRequest) -> Plan[RoleLimit]:
        """``POST /api/v1/update-role-policies``."""
        request = core.build("POST", "/api/v1/update-role-policies", body)
        return read((yield from call(core, request, repeatable=False)), RoleLimit)

    @method
    @staticmethod
    def role_limit(core: Core, workspace_id: int, role_id: int) -> Plan[RoleLimit]:
        """``GET /api/v1/get-role-limit``."""
        query = {"workspace_id": workspace_id, "role_id": role_id}
        request = core.build("GET", "/api/v1/get-role-limit", query=query)
        return read((yield from call(core, request, repeatable=True)), RoleLimit)

    @method
    @staticmethod
    def check_user_role_limit(
        core: Core, workspace_id: int, *, role_id: int, user_id: int, amount: str
    ) -> Plan[bool]:
        """``GET /api/v1/check-user-role-limit``: whether the amount would fit now. It reserves nothing."""
        query = {"workspace_id": workspace_id, "role_id": role_id, "uuid": user_id, "amount_to_check": amount}
        request = core.build("GET", "/api/v1/check-user-role-limit", query=query)
        return read((yield from call(core, request, repeatable=True)), LimitCheck).success

    @method
    @staticmethod
    def my_limits(core: Core, workspace_id: int) -> Plan[MyLimits]:
        """``GET /api/v1/get-my-limits``."""
        request = core.build("GET", "/api/v1/get-my-limits", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), MyLimits)

    @method
    @staticmethod
    def update_vault(core: Core, body: UpdateVaultRequest) -> Plan[VaultLimits]:
        """``POST /api/v1/update-vault``."""
        request = core.build("POST", "/api/v1/update-vault", body)
        return read((yield from call(core, request, repeatable=False)), VaultLimits)

    @method
    @staticmethod
    def vault_limits(core: Core, workspace_id: int, vault_id: str) -> Plan[VaultLimits | LimitError]:
        """``GET /api/v1/get-vault-limits``: the limits, or why they cannot be told now."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id}
        request = core.build("GET", "/api/v1/get-vault-limits", query=query)
        return read((yield from call(core, request, repeatable=True)), _VAULT_LIMITS)

    @method
    @staticmethod
    def check_vault_limit(core: Core, workspace_id: int, vault_id: str, amount: str) -> Plan[bool]:
        """``GET /api/v1/check-vault-limit``: whether a movement of the amount would fit now. It reserves nothing."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id, "amount_to_check": amount}
        request = core.build("GET", "/api/v1/check-vault-limit", query=query)
        return read((yield from call(core, request, repeatable=True)), LimitCheck).success
