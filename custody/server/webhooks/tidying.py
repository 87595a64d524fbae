"""When the log of deliveries is deleted."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.server.jobs.tidying import Part, delete_batch
from custody.server.store.models import JobRow, WebhookDeliveryRow, WebhookEventRow
from custody.server.webhooks.events import WEBHOOK

DELIVERIES_KEPT: Final = timedelta(days=30)
# The delivery's row has all that its job has.
JOBS_KEPT: Final = timedelta(days=1)


def _jobs(db: Session, now: datetime) -> int:
    over = or_(JobRow.done_at <= now - JOBS_KEPT, JobRow.dead_at <= now - DELIVERIES_KEPT)
    return delete_batch(db, JobRow, JobRow.kind == WEBHOOK, over)


def _deliveries(db: Session, now: datetime) -> int:
    """Not a delivery that a member has just asked for again."""
    is_old = WebhookDeliveryRow.created_at <= now - DELIVERIES_KEPT
    return delete_batch(db, WebhookDeliveryRow, is_old, WebhookDeliveryRow.status != "pending")


def _events(db: Session, now: datetime) -> int:
    """Keeps each workspace's last event, which the next one's sequence is counted from."""
    newer = aliased(WebhookEventRow)
    last = (
        select(func.max(newer.sequence))
        .where(newer.workspace_id == WebhookEventRow.workspace_id)
        .scalar_subquery()
    )
    is_told = select(WebhookDeliveryRow.id).where(WebhookDeliveryRow.event_id == WebhookEventRow.id).exists()
    is_old = WebhookEventRow.created_at <= now - DELIVERIES_KEPT
    return delete_batch(db, WebhookEventRow, is_old, ~is_told, WebhookEventRow.sequence < last)


EXPIRED_LOGS: Final[tuple[Part, ...]] = (_jobs, _deliveries, _events)
