"""Roles of a workspace."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Done, Few
from custody.schemas.roles import (
    AddPermissionRequest,
    CreateRoleRequest,
    DeleteRoleRequest,
    RemovePermissionRequest,
    RoleDetails,
    UpdateRoleRequest,
)

_ROLES = TypeAdapter(Few[RoleDetails])


class RoleCalls:
    @method
    @staticmethod
    def roles(core: Core, workspace_id: int) -> Plan[list[RoleDetails]]:
        """``GET /api/v1/get-roles-and-perms-detailed``."""
        request = core.build(
            "GET", "/api/v1/get-roles-and-perms-detailed", query={"workspace_id": workspace_id}
        )
        return read((yield from call(core, request, repeatable=True)), _ROLES)

    @method
    @staticmethod
    def create_role(
        core: Core, body: CreateRoleRequest, *, idempotency_key: str | None = None
    ) -> Plan[RoleDetails]:
        """``POST /api/v1/create-role``."""
        request = core.build("POST", "/api/v1/create-role", body, headers=idempotency(idempotency_key))
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), RoleDetails)

    @method
    @staticmethod
    def update_role(core: Core, body: UpdateRoleRequest) -> Plan[RoleDetails]:
        """``POST /api/v1/update-role``."""
        request = core.build("POST", "/api/v1/update-role", body)
        return read((yield from call(core, request, repeatable=False)), RoleDetails)

    @method
    @staticmethod
    def delete_role(core: Core, body: DeleteRoleRequest) -> Plan[Done]:
        """``POST /api/v1/delete-role``."""
        request = core.build("POST", "/api/v1/delete-role", body)
        return read((yield from call(core, request, repeatable=False)), Done)

    @method
    @staticmethod
    def add_permission_to_role(core: Core, body: AddPermissionRequest) -> Plan[RoleDetails]:
        """``POST /api/v1/add-perm-to-role``."""
        request = core.build("POST", "/api/v1/add-perm-to-role", body)
        return read((yield from call(core, request, repeatable=False)), RoleDetails)

    @method
    @staticmethod
    def remove_permission_from_role(core: Core, body: RemovePermissionRequest) -> Plan[RoleDetails]:
        """``POST /api/v1/remove-perm-from-role``."""
        request = core.build("POST", "/api/v1/remove-perm-from-role", body)
        return read((yield from call(core, request, repeatable=False)), RoleDetails)
