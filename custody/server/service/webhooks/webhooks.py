"""Creating, changing and deleting webhooks, the log of their deliveries, and when that log is deleted."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas import webhooks as wire
from custody.schemas.call import Page
from custody.schemas.common import Listed, Unreadable
from custody.schemas.webhooks import EVERY_KIND, SECRET_PREFIX, EventKind
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id, new_token
from custody.server.domain.errors import Invalid, NotFound, StateConflict
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.webhooks import BadUrl, read_url
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue, is_open
from custody.server.service.jobs.tidying import Part, delete_batch
from custody.server.service.secrets import WebhookSecrets
from custody.server.service.shown import shown
from custody.server.service.webhook_events import WEBHOOK, WebhookEvents
from custody.server.store.models import Job, Webhook, WebhookDelivery, WebhookEvent

# Time to install the new secret at a receiver by hand. Until then deliveries are signed with both.
OVERLAP: Final = timedelta(days=1)
DELIVERIES_KEPT: Final = timedelta(days=30)
# The delivery's row has all that its job has.
JOBS_KEPT: Final = timedelta(days=1)


class Webhooks:
    """``allowed``: hosts that the operator allows even at private addresses."""

    def __init__(
        self,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        secrets: WebhookSecrets,
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._secrets = secrets
        self._events = WebhookEvents(clock, random)
        self._allowed = allowed

    def create(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.CreateWebhookRequest
    ) -> wire.WebhookWithSecret:
        """Raises Invalid (the URL, an unknown kind), StateConflict (too many, or one with this URL)."""
        url = self._url(request.url)
        kinds = _kinds(request.kinds)
        self._require_room(db, access, url)
        secret = self._new_secret()
        webhook = Webhook(
            id=new_id(self._random),
            workspace_id=access.workspace_id,
            url=url,
            kinds=kinds,
            sealed_secret=self._secrets.seal(secret),
            created_by=caller.user_id,
            created_at=self._clock(),
        )
        db.add(webhook)
        db.flush()
        self._record(db, caller, access, "WEBHOOK_CREATED", webhook, f"for {', '.join(kinds)}")
        return _shown_once(webhook, secret)

    def all(self, db: Session, access: WorkspaceAccess) -> Listed[wire.Webhook]:
        """The oldest first, without their secrets."""
        query = select(Webhook).where(Webhook.workspace_id == access.workspace_id)
        found = db.scalars(query.order_by(Webhook.created_at, Webhook.id)).all()
        return shown(found, lambda some: list(map(webhook_record, some)), "webhook_id", lambda row: row.id)

    def update(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.UpdateWebhookRequest
    ) -> wire.WebhookWithSecret:
        """An update without effect is not recorded. Raises NotFound, Invalid."""
        webhook = self._find(db, access, request.webhook_id)
        changes: list[str] = []
        if request.kinds is not None and (kinds := _kinds(request.kinds)) != webhook.kinds:
            webhook.kinds = kinds
            changes.append(f"for {', '.join(kinds)}")
        if request.enabled is not None and request.enabled is not (webhook.disabled_at is None):
            self._switch(webhook, is_on=request.enabled)
            changes.append("enabled" if request.enabled else "disabled")
        secret = self._rotate(webhook) if request.rotate_secret else None
        if secret is not None:
            changes.append("a new secret")
        db.flush()
        if changes:
            self._record(db, caller, access, "WEBHOOK_UPDATED", webhook, "; ".join(changes))
        return _shown_once(webhook, secret)

    def delete(self, db: Session, caller: Caller, access: WorkspaceAccess, webhook_id: str) -> None:
        """Deletes the log of its deliveries too. A delivery in progress may still arrive. Raises NotFound."""
        webhook = self._find(db, access, webhook_id)
        db.execute(delete(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook.id))
        db.delete(webhook)
        db.flush()
        self._record(db, caller, access, "WEBHOOK_DELETED", webhook, "with its deliveries")

    def deliveries(
        self, db: Session, access: WorkspaceAccess, query: wire.WebhookDeliveriesQuery
    ) -> Page[wire.WebhookDelivery | Unreadable]:
        """Raises NotFound for the webhook, and for an ``after`` that is not a delivery of it."""
        webhook = self._find(db, access, query.webhook_id)
        mine = WebhookDelivery.webhook_id == webhook.id
        total = db.scalar(select(func.count()).select_from(WebhookDelivery).where(mine)) or 0
        wanted = select(WebhookDelivery).where(mine)
        if query.after is not None:
            last = db.get(WebhookDelivery, query.after)
            if last is None or last.webhook_id != webhook.id:
                raise NotFound("There is no such delivery of this webhook.")
            same = WebhookDelivery.created_at == last.created_at
            wanted = wanted.where(
                or_(WebhookDelivery.created_at < last.created_at, same & (WebhookDelivery.id < last.id))
            )
        wanted = wanted.order_by(WebhookDelivery.created_at.desc(), WebhookDelivery.id.desc())
        rows = list(db.scalars(wanted.limit(query.limit + 1)))
        items = shown(
            rows[: query.limit], lambda some: delivery_records(db, some), "delivery_id", lambda row: row.id
        )
        return Page(items, total, has_more=len(rows) > query.limit)

    def redeliver(
        self, db: Session, caller: Caller, access: WorkspaceAccess, delivery_id: str
    ) -> wire.WebhookDelivery:
        """Delivers again from the start, with the same event id. Raises NotFound, StateConflict."""
        delivery = db.get(WebhookDelivery, delivery_id, with_for_update=True)
        if delivery is None:
            raise _no_such_delivery()
        webhook = db.get_one(Webhook, delivery.webhook_id)
        if webhook.workspace_id != access.workspace_id:
            raise _no_such_delivery()
        _require_enabled(webhook)
        # A pending delivery without a job has lost it: an operator deleted the job, or it was given up.
        if delivery.status == "pending" and is_open(db, WEBHOOK, delivery.id):
            raise StateConflict("This delivery is under way.")
        now = self._clock()
        delivery.status, delivery.attempts, delivery.error = "pending", 0, None
        delivery.queued_at = delivery.next_attempt_at = now
        # The request says that the receiver answers again.
        webhook.quiet_until = None
        db.flush()
        enqueue(db, WEBHOOK, delivery.id, now)
        self._record(db, caller, access, "WEBHOOK_REDELIVERED", webhook, f"delivery {delivery.id}")
        return delivery_records(db, [delivery])[0]

    def test(
        self, db: Session, caller: Caller, access: WorkspaceAccess, webhook_id: str
    ) -> wire.WebhookDelivery:
        """Sends a ping, whatever kinds the webhook subscribes to. Raises NotFound, StateConflict."""
        webhook = self._find(db, access, webhook_id)
        _require_enabled(webhook)
        webhook.quiet_until = None
        delivery = self._events.ping(db, webhook)
        self._record(db, caller, access, "WEBHOOK_TESTED", webhook, f"delivery {delivery.id}")
        return delivery_records(db, [delivery])[0]

    def _url(self, text: str) -> str:
        try:
            return str(read_url(text, self._allowed))
        except BadUrl as error:
            sentence = str(error)
            raise Invalid.at("/url", sentence) from None

    @staticmethod
    def _require_room(db: Session, access: WorkspaceAccess, url: str) -> None:
        urls = set(db.scalars(select(Webhook.url).where(Webhook.workspace_id == access.workspace_id)))
        if url in urls:
            raise StateConflict("The workspace has a webhook with this URL already; change its kinds.")
        if len(urls) >= wire.MAX_WEBHOOKS:
            raise StateConflict(f"A workspace has at most {wire.MAX_WEBHOOKS} webhooks; delete one first.")

    @staticmethod
    def _find(db: Session, access: WorkspaceAccess, webhook_id: str) -> Webhook:
        webhook = db.get(Webhook, webhook_id)
        if webhook is None or webhook.workspace_id != access.workspace_id:
            raise NotFound("There is no such webhook in this workspace.")
        return webhook

    def _switch(self, webhook: Webhook, *, is_on: bool) -> None:
        """An enabled webhook starts without its past failures."""
        webhook.failing_since = webhook.quiet_until = None
        webhook.disabled_at = None if is_on else self._clock()
        webhook.disabled_reason = None if is_on else wire.DisabledReason.BY_A_MEMBER.value

    def _rotate(self, webhook: Webhook) -> str:
        secret = self._new_secret()
        webhook.sealed_old_secret = webhook.sealed_secret
        webhook.old_secret_until = self._clock() + OVERLAP
        webhook.sealed_secret = self._secrets.seal(secret)
        return secret

    def _new_secret(self) -> str:
        return SECRET_PREFIX + new_token(self._random)

    def _record(
        self, db: Session, caller: Caller, access: WorkspaceAccess, action: str, webhook: Webhook, what: str
    ) -> None:
        """Without the URL: a receiver's path often holds a secret (P49)."""
        self._audit.record(
            db, caller, Category.WEBHOOKS, action, f"webhook {webhook.id}, {what}", access=access
        )


def _kinds(given: Sequence[str]) -> list[str]:
    """Sorted, each once. Raises Invalid."""
    known: Collection[str] = {*EventKind, EVERY_KIND}
    for place, kind in enumerate(given):
        if kind not in known:
            sentence = f"There is no kind of event named {kind!r}."
            raise Invalid.at(f"/kinds/{place}", sentence)
    return sorted({str(kind) for kind in given})


def _require_enabled(webhook: Webhook) -> None:
    if webhook.disabled_at is not None:
        raise StateConflict("The webhook is disabled; enable it first.")


def _shown_once(webhook: Webhook, secret: str | None) -> wire.WebhookWithSecret:
    return wire.WebhookWithSecret(**vars(webhook_record(webhook)), secret=secret)


def _no_such_delivery() -> NotFound:
    return NotFound("There is no such delivery in this workspace.")


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
    """In the order given."""
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
