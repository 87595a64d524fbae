"""Workspaces of an organisation."""

from custody.schemas.users import (
    CreateWorkspaceRequest,
    PermissionName,
    UpdateWorkspaceRequest,
    WorkspaceEntry,
    WorkspaceInfo,
)
from custody.server.domain.errors import StateConflict
from custody.server.web.endpoint import Call, Endpoint, Unit

MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})


def create_workspace(call: Call[CreateWorkspaceRequest]) -> WorkspaceEntry:
    """Another workspace of the organisation, with its first roles. The caller is its administrator."""
    return call.services.workspaces.create(call.db, call.caller, call.access, call.body)


def update_workspace(call: Call[UpdateWorkspaceRequest]) -> WorkspaceInfo:
    """Changes a workspace's name and description. Its network is fixed."""
    return call.services.workspaces.update(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/create-workspace",
        create_workspace,
        WorkspaceEntry,
        MANAGERS,
        Unit.WRITE,
        CreateWorkspaceRequest,
        creates=True,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/update-workspace",
        update_workspace,
        WorkspaceInfo,
        MANAGERS,
        Unit.WRITE,
        UpdateWorkspaceRequest,
        refuses=(StateConflict,),
    ),
)
