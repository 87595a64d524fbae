"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from custody.client.flow import Sent, sends
from custody.schemas.roles import (
    ADD_PERMISSION_TO_ROLE,
    CREATE_ROLE,
    DELETE_ROLE,
    REMOVE_PERMISSION_FROM_ROLE,
    ROLES,
    UPDATE_ROLE,
    AddPermissionRequest,
    CreateRoleRequest,
    DeleteRoleRequest,
    RemovePermissionRequest,
    UpdateRoleRequest,
)


class RoleCalls:
    @sends(ROLES)
    @staticmethod
    def roles(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(CREATE_ROLE)
    @staticmethod
    def create_role(body: CreateRoleRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(UPDATE_ROLE)
    @staticmethod
    def update_role(body: UpdateRoleRequest) -> Sent:
        return Sent(body)

    @sends(DELETE_ROLE)
    @staticmethod
    def delete_role(body: DeleteRoleRequest) -> Sent:
        return Sent(body)

    @sends(ADD_PERMISSION_TO_ROLE)
    @staticmethod
    def add_permission_to_role(body: AddPermissionRequest) -> Sent:
        return Sent(body)

    @sends(REMOVE_PERMISSION_FROM_ROLE)
    @staticmethod
    def remove_permission_from_role(body: RemovePermissionRequest) -> Sent:
        return Sent(body)
