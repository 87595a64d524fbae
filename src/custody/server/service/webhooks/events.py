"""Writing events in the transaction of what they tell of, with a delivery for each webhook that wants them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.webhook_events import EventKind
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.tokens import new_id
from custody.server.domain.webhook_events import carried, wants
from custody.server.service.jobs.outbox import enqueue
from custody.server.store.models import Webhook, WebhookDelivery, WebhookEvent

WEBHOOK: Final = "webhook"


class WebhookEvents:
    def __init__(self, clock: Clock, random: RandomBytes) -> None:
        self._clock = clock
        self._random = random

    def tell(self, db: Session, workspace_id: int, kind: EventKind, data: Mapping[str, Any]) -> None:
        """Where no webhook of the workspace wants to know, this is one look at an index, and nothing is written."""
        wanted_by = self._wanting(db, workspace_id, kind)
        if wanted_by:
            self._write(db, workspace_id, kind, data, wanted_by)

    def are_wanted(self, db: Session, workspace_id: int, kind: EventKind) -> bool:
        """For whoever has to look further before it can tell."""
        return bool(self._wanting(db, workspace_id, kind))

    def ping(self, db: Session, webhook: Webhook) -> WebhookDelivery:
        """To this one alone, whatever it wants otherwise."""
        data = {"webhook_id": webhook.id}
        (delivery,) = self._write(db, webhook.workspace_id, EventKind.PING, data, [webhook])
        return delivery

    @staticmethod
    def _wanting(db: Session, workspace_id: int, kind: EventKind) -> list[Webhook]:
        query = select(Webhook).where(Webhook.workspace_id == workspace_id, Webhook.disabled_at.is_(None))
        found = db.scalars(query.order_by(Webhook.created_at, Webhook.id))
        return [webhook for webhook in found if wants(webhook.kinds, kind)]

    def _write(
        self,
        db: Session,
        workspace_id: int,
        kind: EventKind,
        data: Mapping[str, Any],
        webhooks: Sequence[Webhook],
    ) -> list[WebhookDelivery]:
        now = self._clock()
        event = WebhookEvent(
            id=new_id(self._random),
            workspace_id=workspace_id,
            sequence=_next_sequence(db, workspace_id),
            kind=kind.value,
            payload=carried(kind, data),
            created_at=now,
        )
        db.add(event)
        db.flush()
        deliveries = [self._delivery(webhook, event, now) for webhook in webhooks]
        db.add_all(deliveries)
        db.flush()
        for delivery in deliveries:
            enqueue(db, WEBHOOK, delivery.id, now)
        return deliveries

    def _delivery(self, webhook: Webhook, event: WebhookEvent, now: datetime) -> WebhookDelivery:
        return WebhookDelivery(
            id=new_id(self._random),
            webhook_id=webhook.id,
            event_id=event.id,
            status="pending",
            attempts=0,
            queued_at=now,
            next_attempt_at=now,
            created_at=now,
        )


def _next_sequence(db: Session, workspace_id: int) -> int:
    """One writer at a time (ADR 13): nobody takes the same one, and it is the order in which transactions commit."""
    newest = select(func.max(WebhookEvent.sequence)).where(WebhookEvent.workspace_id == workspace_id)
    return (db.scalar(newest) or 0) + 1
