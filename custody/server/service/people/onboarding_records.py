"""Stored requests for organisations as the specification's record."""

from collections.abc import Sequence
from typing import cast

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from custody.schemas import onboarding as wire
from custody.schemas.common import ApiNetwork, NullInt64, NullString, NullTime
from custody.server.store.models import OnboardingRequest, User


def onboarding_records(
    db: Session, wanted: Sequence[ColumnElement[bool]], limit: int
) -> list[wire.OnboardingRequest]:
    """At most ``limit`` of those that ``wanted`` selects, the oldest first."""
    query = (
        select(OnboardingRequest, User.email)
        .join(User, User.id == OnboardingRequest.requester_id)
        .where(*wanted)
        .order_by(OnboardingRequest.id)
        .limit(limit)
    )
    return [_shape(stored, email) for stored, email in db.execute(query)]


def onboarding_record(db: Session, stored: OnboardingRequest) -> wire.OnboardingRequest:
    (found,) = onboarding_records(db, [OnboardingRequest.id == stored.id], 1)
    return found


def _shape(stored: OnboardingRequest, email: str) -> wire.OnboardingRequest:
    return wire.OnboardingRequest(
        uid=stored.id,
        requester_uuid=stored.requester_id,
        requester_email=email,
        first_name=stored.first_name,
        last_name=stored.last_name,
        work_email=stored.work_email,
        messaging_platform=stored.messaging_platform,
        messaging_handle=stored.messaging_handle,
        monthly_volume=stored.monthly_volume,
        referral_source=stored.referral_source,
        referral_source_detail=NullString.of(stored.referral_source_detail),
        org_name=stored.org_name,
        workspace_name=stored.workspace_name,
        network=cast("ApiNetwork", stored.network),
        status=wire.OnboardingStatus(stored.status),
        review_note=NullString.of(stored.review_note),
        approved_by_email=NullString.of(stored.approved_by_email),
        approved_at=NullTime.of(stored.approved_at),
        was_created=stored.created_org_id is not None,
        created_org_uid=NullInt64.of(stored.created_org_id),
        submitted_at=stored.submitted_at,
        updated_at=stored.updated_at,
    )
