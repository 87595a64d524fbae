"""Making, changing and deleting webhooks, and the log of what they were told."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from custody.schemas import webhooks as wire
from custody.schemas.webhook_events import EVERY_KIND, EventKind
from custody.schemas.webhook_signature import SECRET_PREFIX
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.credentials import new_id, new_token
from custody.server.domain.errors import Fault, Invalid, NotFound, StateConflict
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.webhook_urls import BadUrl, read_url
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue, is_open
from custody.server.service.webhook_events import WEBHOOK, WebhookEvents
from custody.server.service.webhooks.records import delivery_records, webhook_record
from custody.server.service.webhooks.secrets import WebhookSecrets
from custody.server.store.models import Webhook, WebhookDelivery

# Long enough to bring the new secret to a receiver by hand; deliveries are signed with both meanwhile.
OVERLAP: Final = timedelta(days=1)


@dataclass(frozen=True)
class Page:
    items: list[wire.WebhookDelivery]
    total: int
    has_more: bool


class Webhooks:
    """``allowed``: hosts that webhooks may call wherever they lead, by the operator's word."""

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
        """Raises Invalid (the URL, a kind that there is not), StateConflict (too many, or one with this URL)."""
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

    def all(self, db: Session, access: WorkspaceAccess) -> list[wire.Webhook]:
        """The oldest first, without their secrets."""
        query = select(Webhook).where(Webhook.workspace_id == access.workspace_id)
        found = db.scalars(query.order_by(Webhook.created_at, Webhook.id))
        return [webhook_record(webhook) for webhook in found]

    def update(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.UpdateWebhookRequest
    ) -> wire.WebhookWithSecret:
        """What changes nothing is not recorded. Raises NotFound, Invalid."""
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
        """With the log of its deliveries: what is under way may still arrive. Raises NotFound."""
        webhook = self._find(db, access, webhook_id)
        db.execute(delete(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook.id))
        db.delete(webhook)
        db.flush()
        self._record(db, caller, access, "WEBHOOK_DELETED", webhook, "with its deliveries")

    def deliveries(self, db: Session, access: WorkspaceAccess, query: wire.WebhookDeliveriesQuery) -> Page:
        """Raises NotFound for the webhook, and for an ``after`` that is no delivery of it."""
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
        return Page(delivery_records(db, rows[: query.limit]), total, has_more=len(rows) > query.limit)

    def redeliver(
        self, db: Session, caller: Caller, access: WorkspaceAccess, delivery_id: str
    ) -> wire.WebhookDelivery:
        """Once more from the start, with the same event id. Raises NotFound, StateConflict."""
        delivery = db.get(WebhookDelivery, delivery_id, with_for_update=True)
        if delivery is None:
            raise _no_such_delivery()
        webhook = db.get_one(Webhook, delivery.webhook_id)
        if webhook.workspace_id != access.workspace_id:
            raise _no_such_delivery()
        _require_enabled(webhook)
        # One that is pending without a job lost it: an operator threw it away, or it was given up.
        if delivery.status == "pending" and is_open(db, WEBHOOK, delivery.id):
            raise StateConflict("This delivery is under way.")
        now = self._clock()
        delivery.status, delivery.attempts, delivery.error = "pending", 0, None
        delivery.queued_at = delivery.next_attempt_at = now
        # Whoever asks says that the receiver is there again.
        webhook.quiet_until = None
        db.flush()
        enqueue(db, WEBHOOK, delivery.id, now)
        self._record(db, caller, access, "WEBHOOK_REDELIVERED", webhook, f"delivery {delivery.id}")
        return delivery_records(db, [delivery])[0]

    def test(
        self, db: Session, caller: Caller, access: WorkspaceAccess, webhook_id: str
    ) -> wire.WebhookDelivery:
        """A ping, whatever the webhook wants otherwise. Raises NotFound, StateConflict."""
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
            raise Invalid(sentence, faults=(Fault("/url", sentence),)) from None

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
        """One that is enabled again begins anew, whatever it failed at before."""
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
        """Without the URL: paths of receivers often hold a secret (P49)."""
        self._audit.record(
            db, caller, Category.WEBHOOKS, action, f"webhook {webhook.id}, {what}", access=access
        )


def _kinds(given: Sequence[str]) -> list[str]:
    """Sorted, each once. Raises Invalid."""
    known: Collection[str] = {*EventKind, EVERY_KIND}
    for place, kind in enumerate(given):
        if kind not in known:
            sentence = f"There is no kind of event named {kind!r}."
            raise Invalid(sentence, faults=(Fault(f"/kinds/{place}", sentence),))
    return sorted({str(kind) for kind in given})


def _require_enabled(webhook: Webhook) -> None:
    if webhook.disabled_at is not None:
        raise StateConflict("The webhook is disabled; enable it first.")


def _shown_once(webhook: Webhook, secret: str | None) -> wire.WebhookWithSecret:
    return wire.WebhookWithSecret(**vars(webhook_record(webhook)), secret=secret)


def _no_such_delivery() -> NotFound:
    return NotFound("There is no such delivery in this workspace.")
