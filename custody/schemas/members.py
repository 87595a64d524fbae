"""Members of a workspace, and the calls about them: invited by a mail, or added without; given another role,
removed; and leaving it oneself.
"""

from enum import StrEnum

from pydantic import Field, StrictBool

from custody.schemas.call import ANY_MEMBER, USER_MANAGERS, WORKSPACE_MANAGERS, Auth, Call, Way, few, many
from custody.schemas.common import (
    Done,
    EmailAddress,
    Int64,
    IntId,
    Label,
    NullString,
    NullTime,
    Request,
    Shape,
    TextId,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
    Yes,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.users import Role


class AddWorkspaceToUserRequest(WorkspaceRequest):
    """``POST /api/v1/add-workspace-to-user``: a membership without an invitation."""

    user_uuid: IntId
    role_uid: IntId
    creator_workspace_id: IntId
    creator_org_uuid: IntId


class AllocationResponse(Done):
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


class InvitationStatus(StrEnum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    EXPIRED = "expired"
    REVOKED = "revoked"


class InviteToWorkspaceRequest(Request):
    """``POST /api/v1/invite-to-workspace``. The specification calls the workspace ``workspace_context`` here."""  # noqa: E501

    invited_email: EmailAddress
    workspace_context: IntId
    org_id: IntId
    role_id: IntId


class InviteResponse(Done):
    invite_id: Label


class Invitation(Shape):
    """``InvitedBy`` is an e-mail address: whom to ask about it, for somebody who is no member yet."""

    invite_uid: Label = Field(alias="InviteUID")
    invited_email: Label = Field(alias="InvitedEmail")
    org_id: Int64 = Field(alias="OrgID")
    org_name: Label = Field(alias="OrgName")
    workspace_id: Int64 = Field(alias="WorkspaceID")
    workspace_name: Label = Field(alias="WorkspaceName")
    role_id: Int64 = Field(alias="RoleID")
    role_name: Label = Field(alias="RoleName")
    invited_by: Label = Field(alias="InvitedBy")
    status: InvitationStatus = Field(alias="Status")
    created_at: Timestamp = Field(alias="CreatedAt")
    expires_at: Timestamp = Field(alias="ExpiresAt")


class AcceptInviteQuery(Request):
    """``GET /api/v1/accept-invite``: ``accept=false`` declines."""

    invite_id: TextId
    accept: Yes


class RevokeInviteRequest(WorkspaceRequest):
    """``POST /api/v1/revoke-invite``."""

    invite_id: TextId


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
INVITE_TO_WORKSPACE = Call(
    "POST", "/api/v1/invite-to-workspace", InviteToWorkspaceRequest, InviteResponse,
    "Offers an address a place in the workspace, for seven days, and mails it. The address needs no account "
    "yet.\n\nThe role may carry nothing that the caller's own does not. One invitation of an address to a "
    "workspace is open at a\ntime; revoke it to send another.",
    USER_MANAGERS, creates=True, workspace_field="workspace_context", second_person="Invite a person",
    cools=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
WORKSPACE_INVITATIONS = Call(
    "GET", "/api/v1/get-pending-workspace-invites", WorkspaceQuery, few(Invitation),
    "The workspace's invitations that wait for an answer, the oldest first.",
    USER_MANAGERS, attempt="see the invitations",
)  # fmt: skip
OWN_INVITATIONS = Call(
    "GET", "/api/v1/get-invites-pending", type(None), few(Invitation),
    "The caller's own invitations that wait for an answer, the oldest first.", Auth.SIGNED_IN,
)  # fmt: skip
ACCEPT_INVITE = Call(
    "GET", "/api/v1/accept-invite", AcceptInviteQuery, Invitation,
    "Accepts or declines the caller's own invitation, once and for good.\n\nIt changes something although it "
    "is a GET, as the specification has it; a mail scanner that follows links carries no\naccess token. The "
    "inviter must still be able to grant the role when it is accepted.",
    Auth.SIGNED_IN, changes=True,
    refuses=(ErrorCode.NOT_FOUND, ErrorCode.PERMISSION_DENIED, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
REVOKE_INVITE = Call(
    "POST", "/api/v1/revoke-invite", RevokeInviteRequest, Invitation,
    "Takes an offer back that was not answered yet.",
    USER_MANAGERS, attempt="take back an invitation", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
