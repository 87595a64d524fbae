"""Writing events in the transaction of what they tell of, with a delivery for each webhook that wants them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.orm import Session

from custody.schemas.webhook_events import EventKind
from custody.server.domain.credentials import new_id
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.webhook_events import carried, wants
from custody.server.service.jobs.outbox import enqueue_new
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
        (delivery_id,) = self._write(db, webhook.workspace_id, EventKind.PING, data, [webhook.id])
        return db.get_one(WebhookDelivery, delivery_id)

    @staticmethod
    def _wanting(db: Session, workspace_id: int, kind: EventKind) -> list[str]:
        """Their ids."""
        found = db.execute(_LISTENING, {"workspace_id": workspace_id})
        return [webhook_id for webhook_id, kinds in found if wants(kinds, kind)]

    def _write(
        self,
        db: Session,
        workspace_id: int,
        kind: EventKind,
        data: Mapping[str, Any],
        webhooks: Sequence[str],
    ) -> list[str]:
        """The deliveries' ids. Three statements, however many webhooks: a block may bring thousands of deposits, and all writers
        wait for the one who stores them.
        """
        now, event_id = self._clock(), new_id(self._random)
        event = {
            "id": event_id,
            "workspace_id": workspace_id,
            "sequence": _next_sequence(db, workspace_id),
            "kind": kind.value,
            "payload": carried(kind, data),
            "created_at": now,
        }
        deliveries = [self._delivery(webhook, event_id, now) for webhook in webhooks]
        ids = [delivery["id"] for delivery in deliveries]
        db.execute(insert(WebhookEvent), [event])
        db.execute(insert(WebhookDelivery), deliveries)
        enqueue_new(db, WEBHOOK, ids, now)
        return ids

    def _delivery(self, webhook_id: str, event_id: str, now: datetime) -> dict[str, Any]:
        return {
            "id": new_id(self._random),
            "webhook_id": webhook_id,
            "event_id": event_id,
            "status": "pending",
            "attempts": 0,
            "queued_at": now,
            "next_attempt_at": now,
            "created_at": now,
        }


_LISTENING = (
    select(Webhook.id, Webhook.kinds)
    .where(Webhook.workspace_id == bindparam("workspace_id"), Webhook.disabled_at.is_(None))
    .order_by(Webhook.created_at, Webhook.id)
)


def _next_sequence(db: Session, workspace_id: int) -> int:
    """One writer at a time (ADR 13): nobody takes the same one, and it is the order in which transactions commit."""
    newest = select(func.max(WebhookEvent.sequence)).where(WebhookEvent.workspace_id == workspace_id)
    return (db.scalar(newest) or 0) + 1
