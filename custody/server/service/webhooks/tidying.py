"""When the log of deliveries is deleted."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.server.service.jobs.tidying import Part, delete_batch
from custody.server.service.webhook_events import WEBHOOK
from custody.server.store.models import Job, WebhookDelivery, WebhookEvent

DELIVERIES_KEPT: Final = timedelta(days=30)
# The delivery's row has all that its job has.
JOBS_KEPT: Final = timedelta(days=1)


def _jobs(db: Session, now: datetime) -> int:
    over = or_(Job.done_at <= now - JOBS_KEPT, Job.dead_at <= now - DELIVERIES_KEPT)
    return delete_batch(db, Job, Job.kind == WEBHOOK, over)


def _deliveries(db: Session, now: datetime) -> int:
    """Not a delivery that a member has just asked for again."""
    is_old = WebhookDelivery.created_at <= now - DELIVERIES_KEPT
    return delete_batch(db, WebhookDelivery, is_old, WebhookDelivery.status != "pending")


def _events(db: Session, now: datetime) -> int:
    """Keeps each workspace's last event, which the next one's sequence is counted from."""
    newer = aliased(WebhookEvent)
    last = (
        select(func.max(newer.sequence))
        .where(newer.workspace_id == WebhookEvent.workspace_id)
        .scalar_subquery()
    )
    is_told = select(WebhookDelivery.id).where(WebhookDelivery.event_id == WebhookEvent.id).exists()
    is_old = WebhookEvent.created_at <= now - DELIVERIES_KEPT
    return delete_batch(db, WebhookEvent, is_old, ~is_told, WebhookEvent.sequence < last)


EXPIRED_LOGS: Final[tuple[Part, ...]] = (_jobs, _deliveries, _events)
