"""Invitations: a place in a workspace, offered to an e-mail address."""

from enum import StrEnum

from pydantic import Field

from custody.schemas.common import (
    EmailAddress,
    Int64,
    IntId,
    Label,
    Request,
    Shape,
    TextId,
    Timestamp,
)


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
    accept: bool


class RevokeInviteRequest(Request):
    """``POST /api/v1/revoke-invite``."""

    invite_id: TextId
    workspace_id: IntId
