"""Workspaces of an organisation: another one, and another name."""

from typing import Final

from custody.schemas.call import Call
from custody.schemas.common import ApiNetwork, IntId, Line, Name, Request
from custody.schemas.errors import ErrorCode
from custody.schemas.permissions import PermissionName
from custody.schemas.users import WorkspaceEntry, WorkspaceInfo

MANAGERS: Final = frozenset({PermissionName.MANAGE_WORKSPACE})


class CreateWorkspaceRequest(Request):
    """``POST /api/v1/create-workspace``. ``workspace_id`` is the one that the request is made from."""

    workspace_id: IntId
    org_id: IntId
    name: Name
    description: Line = ""
    network: ApiNetwork


class UpdateWorkspaceRequest(Request):
    """``POST /api/v1/update-workspace``. What is left out stays."""

    workspace_id: IntId
    name: Name | None = None
    description: Line | None = None


CREATE_WORKSPACE = Call(
    "POST", "/api/v1/create-workspace", CreateWorkspaceRequest, WorkspaceEntry,
    "Another workspace of the organisation, with its first roles. The caller is its administrator.",
    MANAGERS, creates=True, second_person="Make a workspace", cools=True,
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
UPDATE_WORKSPACE = Call(
    "POST", "/api/v1/update-workspace", UpdateWorkspaceRequest, WorkspaceInfo,
    "Changes a workspace's name and description. Its network is fixed.",
    MANAGERS, attempt="change the workspace's name", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
