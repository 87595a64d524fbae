"""Forgetting what webhooks were told: the log is for those who repair a receiver, not a history."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.server.domain.ports import Clock
from custody.server.service.webhooks.events import WEBHOOK
from custody.server.store import Store
from custody.server.store.models import Job, WebhookDelivery, WebhookEvent

INTERVAL: Final = timedelta(hours=1)
# One transaction stays short however much is over.
BATCH: Final = 500
DELIVERIES_KEPT: Final = timedelta(days=30)
# A job says nothing that its delivery does not.
JOBS_KEPT: Final = timedelta(days=1)


class WebhookForgetting:
    """Every hour, in each process: what another one has forgotten already is not there to be found."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._done_at: datetime | None = None

    def run_due(self) -> int:
        """Forgets what is over, and returns how many rows of it there were."""
        now = self._clock()
        if self._done_at is not None and self._done_at <= now < self._done_at + INTERVAL:
            return 0
        self._done_at = now
        return sum(self._forget(part, now) for part in (_jobs, _deliveries, _events))

    def _forget(self, part: Callable[[Session, datetime], int], now: datetime) -> int:
        count = 0
        while True:
            with self._store.write() as db:
                done = part(db, now)
            count += done
            if done < BATCH:
                return count


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
