"""People and workspaces."""

from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import (
    AddWorkspaceToUserRequest,
    AllocationResponse,
    Member,
    PermissionName,
    User,
)
from custody.server.web.endpoint import Call, Door, Endpoint, Unit


def get_user_info(call: Call[None]) -> User:
    """The caller's own record: organisations, workspaces, and the role in each."""
    return call.services.people.user_info(call.db, call.caller.user_id)


def get_users_from_workspace(call: Call[WorkspaceQuery]) -> list[Member]:
    """The members of a workspace, with their role and whether they can sign."""
    return call.services.people.members(call.db, call.access)


def add_workspace_to_user(call: Call[AddWorkspaceToUserRequest]) -> AllocationResponse:
    """Adds a user of the organisation to a workspace, without an invitation."""
    allocation_id = call.services.people.add_to_workspace(call.db, call.caller, call.access, call.body)
    return AllocationResponse(allocation_id=allocation_id)


ENDPOINTS = (
    Endpoint("GET", "/api/v1/get-user-info", get_user_info, User, Door.SIGNED_IN, Unit.READ),
    Endpoint(
        "GET",
        "/api/v1/get-users-from-workspace",
        get_users_from_workspace,
        list[Member],
        frozenset({PermissionName.MANAGE_USERS}),
        Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "POST",
        "/api/v1/add-workspace-to-user",
        add_workspace_to_user,
        AllocationResponse,
        frozenset({PermissionName.MANAGE_WORKSPACE}),
        Unit.WRITE,
        AddWorkspaceToUserRequest,
        creates=True,
    ),
)
