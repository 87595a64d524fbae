"""People, workspaces and roles."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import method
from custody.schemas.users import AddWorkspaceToUserRequest, AllocationResponse, Member, User

_MEMBERS = TypeAdapter(list[Member])


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
