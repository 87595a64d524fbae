"""Requests for an organisation, which a user makes and an operator of the platform decides."""

from enum import StrEnum
from typing import Final, Literal

from custody.schemas.call import Auth, Call, pages
from custody.schemas.common import (
    ApiNetwork,
    EmailAddress,
    Int64,
    Label,
    Name,
    NullInt64,
    NullString,
    NullTime,
    PageSize,
    QueryId,
    Request,
    Shape,
    Text,
    Timestamp,
)
from custody.schemas.errors import ErrorCode


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
    """Who asks is the caller; ``work_email`` is for the operator to write to."""

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
    """``after`` is the last ``uid`` seen."""

    status: OnboardingStatus | None = None
    after: QueryId | None = None
    limit: PageSize = 50


class ReviewOnboardingRequest(Request):
    """The requester reads the note."""

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


_PATH: Final = "/api/v1/onboarding-requests"
SUBMIT_ONBOARDING_REQUEST = Call(
    "POST", _PATH, SubmitOnboardingRequest, OnboardingRequest,
    "Asks for an organisation with a first workspace. The caller becomes its administrator once it is "
    "approved.",
    Auth.SIGNED_IN, creates=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
ONBOARDING_REQUESTS = Call(
    "GET", _PATH, OnboardingQuery, pages(OnboardingRequest, by="uid"),
    "An operator's: everybody's requests. Anybody else's: their own. The oldest first, in pages.",
    Auth.SIGNED_IN,
)  # fmt: skip
REVIEW_ONBOARDING_REQUEST = Call(
    "POST", _PATH + "/{uid}/review", ReviewOnboardingRequest, OnboardingRequest,
    "An operator's decision, once. An approval founds the organisation and its workspace in the same step.",
    Auth.SIGNED_IN, creates=True, refuses=(ErrorCode.PERMISSION_DENIED, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
