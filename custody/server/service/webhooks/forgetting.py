"""Forgetting what webhooks were told: the log is for those who repair a receiver, not a history."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.server.service.jobs.tidying import BATCH, Part
from custody.server.service.webhook_events import WEBHOOK
from custody.server.store.models import Job, WebhookDelivery, WebhookEvent

DELIVERIES_KEPT: Final = timedelta(days=30)
# A job says nothing that its delivery does not.
JOBS_KEPT: Final = timedelta(days=1)


def _jobs(db: Session, now: datetime) -> int:
    over = or_(Job.done_at <= now - JOBS_KEPT, Job.dead_at <= now - DELIVERIES_KEPT)
    found = db.scalars(select(Job.id).where(Job.kind == WEBHOOK, over).limit(BATCH)).all()
    db.execute(delete(Job).where(Job.id.in_(found)))
    return len(found)


def _deliveries(db: Session, now: datetime) -> int:
    """Not one that somebody has just asked for again."""
    over = (WebhookDelivery.created_at <= now - DELIVERIES_KEPT) & (WebhookDelivery.status != "pending")
    found = db.scalars(select(WebhookDelivery.id).where(over).limit(BATCH)).all()
    db.execute(delete(WebhookDelivery).where(WebhookDelivery.id.in_(found)))
    return len(found)


def _events(db: Session, now: datetime) -> int:
    """But for each workspace's last one, from which the next one's sequence is counted."""
    newer = aliased(WebhookEvent)
    last = (
        select(func.max(newer.sequence))
        .where(newer.workspace_id == WebhookEvent.workspace_id)
        .scalar_subquery()
    )
    is_told = select(WebhookDelivery.id).where(WebhookDelivery.event_id == WebhookEvent.id).exists()
    over = (WebhookEvent.created_at <= now - DELIVERIES_KEPT) & ~is_told & (WebhookEvent.sequence < last)
    found = db.scalars(select(WebhookEvent.id).where(over).limit(BATCH)).all()
    db.execute(delete(WebhookEvent).where(WebhookEvent.id.in_(found)))
    return len(found)


TOLD: Final[tuple[Part, ...]] = (_jobs, _deliveries, _events)
