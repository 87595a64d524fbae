"""Invitations to a place in a workspace, offered to an e-mail address."""

from enum import StrEnum

from pydantic import Field

from custody.schemas.call import Call, few
from custody.schemas.common import (
    EmailAddress,
    Int64,
    IntId,
    Label,
    Request,
    Shape,
    TextId,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
    Yes,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.permissions import USER_MANAGERS, Auth


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


class InviteResponse(Shape):
    success: bool = True
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
