"""People and workspaces."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Done, Many
from custody.schemas.users import (
    AddWorkspaceToUserRequest,
    AllocationResponse,
    ChangeUserRoleRequest,
    CreateWorkspaceRequest,
    LeaveWorkspaceRequest,
    Member,
    RemoveUserRequest,
    SetDefaultWorkspaceRequest,
    UpdateUserInfoRequest,
    UpdateWorkspaceRequest,
    User,
    WorkspaceEntry,
    WorkspaceInfo,
)

_MEMBERS = TypeAdapter(Many[Member])


class PeopleCalls:
    @method
    @staticmethod
    def user_info(core: Core) -> Plan[User]:
        """``GET /api/v1/get-user-info``."""
        return read(
            (yield from call(core, core.build("GET", "/api/v1/get-user-info"), repeatable=True)), User
        )

    @method
    @staticmethod
    def members(core: Core, workspace_id: int) -> Plan[list[Member]]:
        """``GET /api/v1/get-users-from-workspace``."""
        request = core.build("GET", "/api/v1/get-users-from-workspace", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), _MEMBERS)

    @method
    @staticmethod
    def add_workspace_to_user(core: Core, body: AddWorkspaceToUserRequest) -> Plan[AllocationResponse]:
        """``POST /api/v1/add-workspace-to-user``."""
        request = core.build("POST", "/api/v1/add-workspace-to-user", body)
        return read((yield from call(core, request, repeatable=False)), AllocationResponse)

    @method
    @staticmethod
    def change_user_role(core: Core, body: ChangeUserRoleRequest) -> Plan[Member]:
        """``POST /api/v1/change-user-role``."""
        request = core.build("POST", "/api/v1/change-user-role", body)
        return read((yield from call(core, request, repeatable=False)), Member)

    @method
    @staticmethod
    def remove_user_from_workspace(core: Core, body: RemoveUserRequest) -> Plan[Done]:
        """``POST /api/v1/remove-user-from-workspace``."""
        request = core.build("POST", "/api/v1/remove-user-from-workspace", body)
        return read((yield from call(core, request, repeatable=False)), Done)

    @method
    @staticmethod
    def leave_workspace(core: Core, workspace_id: int, *, force: bool = False) -> Plan[Done]:
        """``POST /api/v1/leave-workspace``."""
        body = LeaveWorkspaceRequest(workspace_id=workspace_id, force=force)
        request = core.build("POST", "/api/v1/leave-workspace", body)
        return read((yield from call(core, request, repeatable=False)), Done)

    @method
    @staticmethod
    def update_user_info(core: Core, body: UpdateUserInfoRequest) -> Plan[User]:
        """``POST /api/v1/update-user-info``."""
        request = core.build("POST", "/api/v1/update-user-info", body)
        return read((yield from call(core, request, repeatable=False)), User)

    @method
    @staticmethod
    def set_default_workspace(core: Core, workspace_id: int) -> Plan[User]:
        """``POST /api/v1/set-default-workspace``."""
        body = SetDefaultWorkspaceRequest(workspace_id=workspace_id)
        request = core.build("POST", "/api/v1/set-default-workspace", body)
        return read((yield from call(core, request, repeatable=False)), User)

    @method
    @staticmethod
    def create_workspace(
        core: Core, body: CreateWorkspaceRequest, *, idempotency_key: str | None = None
    ) -> Plan[WorkspaceEntry]:
        """``POST /api/v1/create-workspace``."""
        request = core.build("POST", "/api/v1/create-workspace", body, headers=idempotency(idempotency_key))
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), WorkspaceEntry)

    @method
    @staticmethod
    def update_workspace(core: Core, body: UpdateWorkspaceRequest) -> Plan[WorkspaceInfo]:
        """``POST /api/v1/update-workspace``."""
        request = core.build("POST", "/api/v1/update-workspace", body)
        return read((yield from call(core, request, repeatable=False)), WorkspaceInfo)
