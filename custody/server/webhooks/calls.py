"""Creating, changing and deleting webhooks, and the log of their deliveries."""

from base64 import b64encode
from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.schemas import webhooks as wire
from custody.schemas.call import Page
from custody.schemas.common import Done, Listed, Unreadable, WorkspaceQuery
from custody.server.calls import Ctx, serves
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.jobs.outbox import enqueue, open_job
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import TOKEN_BYTES, new_id
from custody.server.rules.webhooks import BadUrl, read_url
from custody.server.secrets import Purpose
from custody.server.shown import newest_first, shape_of, shown
from custody.server.store import models
from custody.server.webhooks.events import job_of

# Time to install the new secret at a receiver by hand. Until then deliveries are signed with both.
OVERLAP: Final = timedelta(days=1)
_LOG: Final = Category.WEBHOOKS
_HOOK: Final = "webhook {webhook}, for {kinds}"
CREATED = Event("WEBHOOK_CREATED", f"made the {_HOOK}", _LOG)
_CHANGES: Final = "webhook {webhook}[, for {kinds}][, {state}][{new_secret}, a new secret]"
UPDATED = Event("WEBHOOK_UPDATED", f"changed the {_CHANGES}", _LOG)
DELETED = Event("WEBHOOK_DELETED", "deleted the webhook {webhook}", _LOG)
TESTED = Event("WEBHOOK_TESTED", "sent a test to the webhook {webhook} // delivery {delivery}", _LOG)
REDELIVERED = Event(
    "WEBHOOK_REDELIVERED", "had a delivery of the webhook {webhook} sent again // delivery {delivery}", _LOG
)


@serves(wire.CREATE_WEBHOOK)
def create_webhook(ctx: Ctx, request: wire.CreateWebhookRequest) -> wire.WebhookWithSecret:
    """Raises Invalid (the URL, an unknown kind), StateConflict (too many, or one with this URL)."""
    url, kinds = checked_url(request.url, ctx.tools.webhook_hosts), _kinds(request.kinds)
    _require_room(ctx, url)
    secret = _new_secret(ctx)
    webhook = models.WebhookRow(
        id=new_id(ctx.tools.random),
        workspace_id=ctx.access.workspace_id,
        url=url,
        kinds=kinds,
        sealed_secret=ctx.tools.secrets.seal(Purpose.WEBHOOK, secret.encode()),
        created_by=ctx.caller.user_id,
        created_at=ctx.now,
    )
    ctx.add(webhook)
    ctx.event(CREATED, webhook=webhook.id, kinds=kinds)
    return _shown_once(webhook, secret)


@serves(wire.WEBHOOKS)
def webhooks(ctx: Ctx, _: WorkspaceQuery) -> Listed[wire.Webhook]:
    query = select(models.WebhookRow).where(models.WebhookRow.workspace_id == ctx.access.workspace_id)
    rows = ctx.db.scalars(query.order_by(models.WebhookRow.created_at, models.WebhookRow.id)).all()
    return shown(rows, lambda some: list(map(_details, some)), "webhook_id", lambda row: row.id)


@serves(wire.UPDATE_WEBHOOK)
def update_webhook(ctx: Ctx, request: wire.UpdateWebhookRequest) -> wire.WebhookWithSecret:
    """An update without effect is not recorded. Raises NotFound, Invalid; StateConflict (it screens)."""
    webhook = ctx.find(models.WebhookRow, request.webhook_id, "webhook")
    changes: dict[str, Any] = {"kinds": None, "state": None, "new_secret": request.rotate_secret}
    if request.kinds is not None and (kinds := _kinds(request.kinds)) != webhook.kinds:
        webhook.kinds = changes["kinds"] = kinds
    if request.enabled is not None and request.enabled is not (webhook.disabled_at is None):
        if not request.enabled:
            _require_screens_nothing(ctx, webhook)
        # An enabled webhook starts without its past failures.
        webhook.failing_since = webhook.quiet_until = None
        webhook.disabled_at = None if request.enabled else ctx.now
        webhook.disabled_reason = None if request.enabled else wire.DisabledReason.BY_A_MEMBER.value
        changes["state"] = "enabled" if request.enabled else "disabled"
    secret = _new_secret(ctx) if request.rotate_secret else None
    if secret is not None:
        webhook.sealed_old_secret = webhook.sealed_secret
        webhook.old_secret_until = ctx.now + OVERLAP
        webhook.sealed_secret = ctx.tools.secrets.seal(Purpose.WEBHOOK, secret.encode())
    ctx.db.flush()
    if any(changes.values()):
        ctx.event(UPDATED, webhook=webhook.id, **changes)
    return _shown_once(webhook, secret)


@serves(wire.DELETE_WEBHOOK)
def delete_webhook(ctx: Ctx, request: wire.WebhookRequest) -> Done:
    """A delivery in progress may still arrive. Raises NotFound, StateConflict (it screens)."""
    webhook = ctx.find(models.WebhookRow, request.webhook_id, "webhook")
    _require_screens_nothing(ctx, webhook)
    ctx.db.execute(
        delete(models.WebhookDeliveryRow).where(models.WebhookDeliveryRow.webhook_id == webhook.id)
    )
    ctx.db.delete(webhook)
    ctx.db.flush()
    ctx.event(DELETED, webhook=webhook.id)
    return Done()


@serves(wire.WEBHOOK_DELIVERIES)
def webhook_deliveries(
    ctx: Ctx, query: wire.WebhookDeliveriesQuery
) -> Page[wire.WebhookDelivery | Unreadable]:
    """Raises NotFound for the webhook, and for an ``after`` that is not a delivery of it."""
    webhook, row = ctx.find(models.WebhookRow, query.webhook_id, "webhook"), models.WebhookDeliveryRow
    mine = row.webhook_id == webhook.id
    rows, total, has_more = newest_first(ctx.db, row, mine, query.after, query.limit)
    items = shown(rows, partial(_delivery_details, ctx.db), "delivery_id", lambda each: str(each.id))
    return Page(items, total, has_more)


@serves(wire.REDELIVER_WEBHOOK)
def redeliver_webhook(ctx: Ctx, request: wire.RedeliverWebhookRequest) -> wire.WebhookDelivery:
    """Delivers again from the start. Raises NotFound, StateConflict."""
    delivery = ctx.db.get(models.WebhookDeliveryRow, request.delivery_id, with_for_update=True)
    webhook = None if delivery is None else ctx.db.get_one(models.WebhookRow, delivery.webhook_id)
    if delivery is None or webhook is None or webhook.workspace_id != ctx.access.workspace_id:
        raise NotFound("There is no such delivery in this workspace.")
    require_enabled(webhook)
    # A pending delivery without a job has lost it: an operator deleted the job, or it was given up.
    job = job_of(ctx.db.get_one(models.WebhookEventRow, delivery.event_id).kind)
    if delivery.status == "pending" and open_job(ctx.db, job, delivery.id) is not None:
        raise StateConflict("This delivery is under way.")
    now = ctx.now
    delivery.status, delivery.attempts, delivery.error = "pending", 0, None
    delivery.queued_at = delivery.next_attempt_at = now
    # The request says that the receiver answers again.
    webhook.quiet_until = None
    ctx.db.flush()
    enqueue(ctx.db, job, delivery.id, now)
    ctx.event(REDELIVERED, webhook=webhook.id, delivery=delivery.id)
    return _delivery_details(ctx.db, [delivery])[0]


@serves(wire.TEST_WEBHOOK)
def test_webhook(ctx: Ctx, request: wire.WebhookRequest) -> wire.WebhookDelivery:
    """A ping, whatever kinds the webhook subscribes to. Raises NotFound, StateConflict."""
    webhook = ctx.find(models.WebhookRow, request.webhook_id, "webhook")
    require_enabled(webhook)
    webhook.quiet_until = None
    data = {"webhook_id": webhook.id}
    sent = ctx.tools.events.send(ctx.db, webhook.id, webhook.workspace_id, wire.EventKind.PING, data)
    delivery = ctx.db.get_one(models.WebhookDeliveryRow, sent)
    ctx.event(TESTED, webhook=webhook.id, delivery=delivery.id)
    return _delivery_details(ctx.db, [delivery])[0]


def checked_url(text: str, allowed: Collection[str]) -> str:
    """Raises Invalid."""
    try:
        return str(read_url(text, allowed))
    except BadUrl as error:
        raise Invalid.at("/url", str(error)) from None


def _require_room(ctx: Ctx, url: str) -> None:
    query = select(models.WebhookRow.url).where(models.WebhookRow.workspace_id == ctx.access.workspace_id)
    urls = set(ctx.db.scalars(query))
    if url in urls:
        raise StateConflict("The workspace has a webhook with this URL already; change its kinds.")
    if len(urls) >= wire.MAX_WEBHOOKS:
        raise StateConflict(f"A workspace has at most {wire.MAX_WEBHOOKS} webhooks; delete one first.")


def _require_screens_nothing(ctx: Ctx, webhook: models.WebhookRow) -> None:
    names = select(models.VaultRow.name).where(models.VaultRow.screening_webhook_id == webhook.id)
    for name in ctx.db.scalars(names.limit(1)):
        raise StateConflict(f"It screens proposals of the vault {name}: change that vault's controls first.")


def _new_secret(ctx: Ctx) -> str:
    return wire.SECRET_PREFIX + b64encode(ctx.tools.random(TOKEN_BYTES)).decode()


def _kinds(given: Sequence[str]) -> list[str]:
    """Sorted, each once. Raises Invalid."""
    known: Collection[str] = {*wire.EventKind, wire.EVERY_KIND}
    for place, kind in enumerate(given):
        if kind not in known:
            sentence = f"There is no kind of event named {kind!r}."
            raise Invalid.at(f"/kinds/{place}", sentence)
    return sorted({str(kind) for kind in given})


def require_enabled(webhook: models.WebhookRow) -> None:
    if webhook.disabled_at is not None:
        raise StateConflict("The webhook is disabled; enable it first.")


def _shown_once(webhook: models.WebhookRow, secret: str | None) -> wire.WebhookWithSecret:
    return wire.WebhookWithSecret(**vars(_details(webhook)), secret=secret)


def _details(webhook: models.WebhookRow) -> wire.Webhook:
    return shape_of(wire.Webhook, webhook, webhook_id=webhook.id, enabled=webhook.disabled_at is None)


def _delivery_details(
    db: Session, deliveries: Sequence[models.WebhookDeliveryRow]
) -> list[wire.WebhookDelivery]:
    """In the order given."""
    query = select(models.WebhookEventRow).where(
        models.WebhookEventRow.id.in_([each.event_id for each in deliveries])
    )
    events = {event.id: event for event in db.scalars(query)}
    return [
        shape_of(
            wire.WebhookDelivery,
            each,
            delivery_id=each.id,
            sequence=events[each.event_id].sequence,
            kind=events[each.event_id].kind,
        )
        for each in deliveries
    ]
