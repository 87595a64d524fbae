"""How people join: requests for an organisation, which a user makes and an operator of the platform decides;
and invitations to a place in a workspace, offered to an e-mail address.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from custody.schemas.common import (
    DIGITS,
    ApiNetwork,
    EmailAddress,
    Int64,
    IntId,
    Label,
    Name,
    NullInt64,
    NullString,
    NullTime,
    Request,
    Shape,
    Text,
    TextId,
    Timestamp,
)
from custody.schemas.queries import QueryId

MAX_REQUESTS = 500


class MonthlyVolume(StrEnum):
    """What the organisation expects to move in a month, in US dollars: a range, because the figure is not known beforehand."""  # noqa: E501

    UNDER_10K = "0-10k"
    UNDER_100K = "10k-100k"
    UNDER_1M = "100k-1m"
    UNDER_10M = "1m-10m"
    OVER_10M = "10m+"


class OnboardingStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


class SubmitOnboardingRequest(Request):
    """``POST /api/v1/onboarding-requests``. Who asks is the caller; ``work_email`` is for the operator to write to."""  # noqa: E501

    first_name: Name
    last_name: Name
    work_email: EmailAddress
    messaging_platform: Name
    messaging_handle: Name
    monthly_volume: MonthlyVolume
    referral_source: Name
    referral_source_detail: Text | None = None
    org_name: Name
    workspace_name: Name
    network: ApiNetwork = "testnet"


class OnboardingQuery(Request):
    """``GET /api/v1/onboarding-requests``: the oldest first; ``after`` is the last ``uid`` seen."""

    status: OnboardingStatus | None = None
    after: QueryId | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_REQUESTS), DIGITS] = 50


class ReviewOnboardingRequest(Request):
    """``POST /api/v1/onboarding-requests/{uid}/review``. The requester reads the note."""

    decision: Literal["approve", "reject"]
    review_note: Text | None = None


class OnboardingRequest(Shape):
    """The specification's OnboardingRequest. ``was_created``: the organisation and its workspace exist."""

    uid: Int64
    requester_uuid: Int64
    requester_email: Label
    first_name: Label
    last_name: Label
    work_email: Label
    messaging_platform: Label
    messaging_handle: Label
    monthly_volume: Label
    referral_source: Label
    referral_source_detail: NullString
    org_name: Label
    workspace_name: Label
    # Ours beside the specification's: where the workspace will be.
    network: ApiNetwork
    status: OnboardingStatus
    review_note: NullString
    approved_by_email: NullString
    approved_at: NullTime
    was_created: bool
    created_org_uid: NullInt64
    submitted_at: Timestamp
    updated_at: Timestamp


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


def _yes_or_no(value: object) -> object:
    """A query has text alone; as JSON writes it, and in no other form."""
    if isinstance(value, bool) or value in ("true", "false"):
        return value
    raise ValueError("write true or false")


class AcceptInviteQuery(Request):
    """``GET /api/v1/accept-invite``: ``accept=false`` declines."""

    invite_id: TextId
    accept: Annotated[bool, BeforeValidator(_yes_or_no)]


class RevokeInviteRequest(Request):
    """``POST /api/v1/revoke-invite``."""

    invite_id: TextId
    workspace_id: IntId
