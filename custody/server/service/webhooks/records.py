"""Webhooks and deliveries as they are shown."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import webhooks as wire
from custody.server.store.models import Webhook, WebhookDelivery, WebhookEvent


def webhook_record(webhook: Webhook) -> wire.Webhook:
    reason = webhook.disabled_reason
    return wire.Webhook(
        webhook_id=webhook.id,
        workspace_id=webhook.workspace_id,
        url=webhook.url,
        kinds=webhook.kinds,
        enabled=webhook.disabled_at is None,
        disabled_at=webhook.disabled_at,
        disabled_reason=None if reason is None else wire.DisabledReason(reason),
        failing_since=webhook.failing_since,
        old_secret_until=webhook.old_secret_until,
        created_by=webhook.created_by,
        created_at=webhook.created_at,
    )


def delivery_records(db: Session, deliveries: Sequence[WebhookDelivery]) -> list[wire.WebhookDelivery]:
    """In the order that they are given in."""
    query = select(WebhookEvent).where(WebhookEvent.id.in_([each.event_id for each in deliveries]))
    events = {event.id: event for event in db.scalars(query)}
    return [_shape(delivery, events[delivery.event_id]) for delivery in deliveries]


def _shape(delivery: WebhookDelivery, event: WebhookEvent) -> wire.WebhookDelivery:
    return wire.WebhookDelivery(
        delivery_id=delivery.id,
        webhook_id=delivery.webhook_id,
        event_id=event.id,
        sequence=event.sequence,
        kind=event.kind,
        status=wire.DeliveryStatus(delivery.status),
        attempts=delivery.attempts,
        response_status=delivery.response_status,
        error=delivery.error,
        attempted_at=delivery.attempted_at,
        next_attempt_at=delivery.next_attempt_at,
        created_at=delivery.created_at,
    )
