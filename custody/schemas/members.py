"""Members of a workspace, and the calls about them: added without an invitation, given another role, removed;
and leaving it oneself.
"""

from pydantic import Field, StrictBool

from custody.schemas.call import Call, Way, many
from custody.schemas.common import (
    Done,
    Int64,
    IntId,
    Label,
    NullString,
    NullTime,
    Shape,
    WorkspaceQuery,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.permissions import ANY_MEMBER, USER_MANAGERS, WORKSPACE_MANAGERS
from custody.schemas.users import Role


class AddWorkspaceToUserRequest(WorkspaceRequest):
    """``POST /api/v1/add-workspace-to-user``: a membership without an invitation."""

    user_uuid: IntId
    role_uid: IntId
    creator_workspace_id: IntId
    creator_org_uuid: IntId


class AllocationResponse(Shape):
    success: bool = True
    allocation_id: Int64


class LeaveWorkspaceRequest(WorkspaceRequest):
    """``POST /api/v1/leave-workspace``. ``force``: even where a vault keeps too few signers."""

    force: StrictBool = False


class RemoveUserRequest(LeaveWorkspaceRequest):
    """``POST /api/v1/remove-user-from-workspace``: of a member, by somebody else."""

    user_uuid: IntId


class ChangeUserRoleRequest(RemoveUserRequest):
    """``POST /api/v1/change-user-role``: which takes approvals away, too, where the new role has none."""

    role_id: IntId


class Member(Shape):
    """A row of ``GET /api/v1/get-users-from-workspace``. ``can_sign``: holds an active key on the workspace's network."""  # noqa: E501

    uuid: Int64 = Field(alias="UUID")
    email: Label = Field(alias="Email")
    first_name: NullString = Field(alias="FirstName")
    surname: NullString = Field(alias="Surname")
    role: Role = Field(alias="Role")
    can_sign: bool
    last_login: NullTime = Field(default=NullTime.model_construct(valid=False), alias="LastLogin")


MEMBERS = Call(
    "GET", "/api/v1/get-users-from-workspace", WorkspaceQuery, many(Member),
    "The members of a workspace, with their role and whether they can sign.",
    USER_MANAGERS, attempt="see the members", open_to=frozenset({Way.DECIDER}),
)  # fmt: skip
ADD_WORKSPACE_TO_USER = Call(
    "POST", "/api/v1/add-workspace-to-user", AddWorkspaceToUserRequest, AllocationResponse,
    "Adds a user of the organisation to a workspace, without an invitation, in a role that carries no more "
    "than yours.",
    WORKSPACE_MANAGERS, creates=True,
    second_person="Add a colleague to the workspace", cools=True,    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
CHANGE_USER_ROLE = Call(
    "POST", "/api/v1/change-user-role", ChangeUserRoleRequest, Member,
    "Gives a member another role. Neither the old one nor the new one may carry what yours does not.",
    USER_MANAGERS, second_person="Give a member another role", cools=True,
    refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
REMOVE_USER_FROM_WORKSPACE = Call(
    "POST", "/api/v1/remove-user-from-workspace", RemoveUserRequest, Done,
    "Takes a member's place away, at once. Refused where a vault would keep too few signers, unless forced.",
    USER_MANAGERS, second_person="Remove a member", refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
LEAVE_WORKSPACE = Call(
    "POST", "/api/v1/leave-workspace", LeaveWorkspaceRequest, Done,
    "Gives up one's own place. The last administrator stays.",
    ANY_MEMBER, attempt="leave the workspace", open_to=frozenset({Way.UNLINKED}),
    refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
