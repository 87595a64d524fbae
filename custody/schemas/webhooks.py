"""Webhooks of a workspace, and the log of their deliveries."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StrictBool, StringConstraints

from custody.schemas.common import (
    Count,
    Few,
    Int64,
    IntId,
    Label,
    Prose,
    Request,
    Shape,
    TextId,
    Timestamp,
)
from custody.schemas.queries import QueryId
from custody.schemas.webhook_events import Kinds

MAX_DELIVERIES: Final = 500
# GitHub lets a repository have twenty for each event; each event is written once for each webhook that wants
# it.
MAX_WEBHOOKS: Final = 10

Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1_000),
    Field(examples=["https://receiver.example.org/custody"]),
]


class DisabledReason(StrEnum):
    BY_A_MEMBER = "by-a-member"
    # It answered 410.
    GONE = "gone"
    # It failed for days.
    UNANSWERED = "unanswered"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class CreateWebhookRequest(Request):
    """``POST /api/v1/create-webhook``. ``kinds``: `EventKind`s, or ``*`` for all there are and will be."""

    workspace_id: IntId
    url: Url
    kinds: Kinds


class Webhook(Shape):
    """``failing_since``: no delivery was taken since then. ``old_secret_until``: until then the old secret signs as well."""  # noqa: E501

    webhook_id: TextId
    workspace_id: Int64
    url: Prose
    kinds: Few[Label]
    enabled: bool
    disabled_at: Timestamp | None
    disabled_reason: DisabledReason | None
    failing_since: Timestamp | None
    old_secret_until: Timestamp | None
    created_by: Int64
    created_at: Timestamp


class WebhookWithSecret(Webhook):
    """``secret`` is shown here and never again; null where no new one was made."""

    secret: Prose | None = Field(repr=False)


class UpdateWebhookRequest(Request):
    """``POST /api/v1/update-webhook``. What is left out stays.

    ``rotate_secret`` makes a new secret; deliveries carry the signatures of both for a day.
    """

    webhook_id: TextId
    workspace_id: IntId
    kinds: Kinds | None = None
    enabled: StrictBool | None = None
    rotate_secret: StrictBool = False


class WebhookRequest(Request):
    """``POST /api/v1/delete-webhook`` and ``test-webhook``."""

    webhook_id: TextId
    workspace_id: IntId


class RedeliverWebhookRequest(Request):
    """``POST /api/v1/redeliver-webhook``."""

    delivery_id: TextId
    workspace_id: IntId


class WebhookDeliveriesQuery(Request):
    """``GET /api/v1/webhook-deliveries``: the newest first; ``after`` is the last id seen."""

    workspace_id: QueryId
    webhook_id: TextId
    after: TextId | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_DELIVERIES)] = 100


class WebhookDelivery(Shape):
    """``response_status`` and ``error`` are the last attempt's. Of what the receiver answered, nothing else is kept."""  # noqa: E501

    delivery_id: TextId
    webhook_id: TextId
    event_id: TextId
    sequence: Int64
    kind: Label
    status: DeliveryStatus
    attempts: Count
    response_status: Count | None
    error: Prose | None
    attempted_at: Timestamp | None
    next_attempt_at: Timestamp | None
    created_at: Timestamp
