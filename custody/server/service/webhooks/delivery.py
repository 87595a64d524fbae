"""Delivering events: a job for each, at least once, until the receiver has taken it or three days are over."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from custody.schemas.webhook_events import WebhookEvent as Told
from custody.schemas.webhook_signature import (
    DELIVERY_HEADER,
    KIND_HEADER,
    SIGNATURE_HEADER,
    signature_header,
)
from custody.server.domain.audit import Category
from custody.server.domain.ports import Clock
from custody.server.domain.retries import HANGS_FROM, is_hopeless, next_attempt, quiet_until
from custody.server.domain.webhook_urls import BadUrl, WebhookUrl, read_url
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import Again, Done, Finish, Task, Verdict
from custody.server.service.mail.jobs import queue_mail
from custody.server.service.mail.texts import Template
from custody.server.service.system import PLATFORM, place_of
from custody.server.service.webhook_events import WEBHOOK
from custody.server.service.webhooks.secrets import WebhookSecrets
from custody.server.service.webhooks.sending import Sender, Trouble, Undelivered
from custody.server.service.webhooks.shares import Shares
from custody.server.store import Store
from custody.server.store.chunks import chunks
from custody.server.store.models import (
    Job,
    Membership,
    User,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    Workspace,
)

log = structlog.get_logger()

USER_AGENT: Final = "custody-webhooks/1"
GONE: Final = "gone"
UNANSWERED: Final = "unanswered"
# Put off together, so that each need not be leased to find out: a transaction for so many, not two for each.
PUT_OFF_AT_ONCE: Final = 1_000


@dataclass(frozen=True)
class Letter:
    """A delivery as it is sent. ``secrets``: those that sign it."""

    delivery_id: str
    workspace_id: int
    url: str
    kind: str
    body: bytes
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Attempt:
    """What came of it: an answer's status, or the trouble before there was one."""

    status: int | None = None
    trouble: Trouble | None = None

    @property
    def was_taken(self) -> bool:
        return self.trouble is None


class WebhookJobs:
    """The handler. A worker that dies between the receiver's answer and our record delivers again, with the same event id."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        audit: AuditLog,
        secrets: WebhookSecrets,
        sender: Sender,
        allowed: frozenset[str] = frozenset(),
        *,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._secrets = secrets
        self._sender = sender
        self._allowed = allowed
        self._timer = timer
        self._shares = Shares(timer)

    def __call__(self, task: Task) -> Finish:
        found = self._find(task.subject)
        if not isinstance(found, Letter):
            return found
        began_at = self._timer()
        try:
            attempt = self._attempt(found)
        finally:
            seconds = self._timer() - began_at
            self._shares.spend(found.workspace_id, seconds)
        hung = attempt.trouble is Trouble.TIMED_OUT or timedelta(seconds=seconds) >= HANGS_FROM
        return lambda db: self._record(db, found.delivery_id, attempt, hung=hung)

    def _find(self, delivery_id: str) -> Letter | Finish:
        """What to send, or how the job ends without sending: read in a snapshot, for nobody waits while we send."""
        now = self._clock()
        with self._store.read() as db:
            delivery = db.get(WebhookDelivery, delivery_id)
            if delivery is None or delivery.status != "pending":
                return _done
            webhook = db.get_one(Webhook, delivery.webhook_id)
            if webhook.disabled_at is not None:
                return lambda db: _give_up(db, delivery_id, Trouble.DISABLED)
            if webhook.quiet_until is not None and webhook.quiet_until > now:
                return self._postponed(delivery_id, webhook.quiet_until, "the receiver is left in peace")
            if wait := self._shares.wait(webhook.workspace_id):
                until = now + timedelta(seconds=wait)
                return self._postponed(delivery_id, until, "the workspace's receivers took their share")
            event = db.get_one(WebhookEvent, delivery.event_id)
            secrets = tuple(self._secrets.that_sign(webhook, now))
            return Letter(delivery.id, webhook.workspace_id, webhook.url, event.kind, body_of(event), secrets)

    def _postponed(self, delivery_id: str, until: datetime, why: str) -> Finish:
        """Not tried, and no attempt of this one: what else is due for the webhook is put off with it."""

        def finish(db: Session) -> Verdict:
            delivery = db.get(WebhookDelivery, delivery_id, with_for_update=True)
            if delivery is None:
                return Done()
            delivery.next_attempt_at = until
            now = self._clock()
            _put_off(db, delivery.webhook_id, now, until)
            return Again(why, until - now)

        return finish

    def _attempt(self, letter: Letter) -> Attempt:
        if not letter.secrets:
            return Attempt(trouble=Trouble.SECRET_UNREADABLE)
        try:
            status = self._sender.post(self._read(letter.url), letter.body, self._headers(letter))
        except Undelivered as error:
            return Attempt(trouble=error.trouble)
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return Attempt(status)
        is_redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
        return Attempt(status, Trouble.REDIRECTED if is_redirect else Trouble.REFUSED)

    def _read(self, url: str) -> WebhookUrl:
        """Again, as it is stored: what the operator allows may be less than it was."""
        try:
            return read_url(url, self._allowed)
        except BadUrl:
            raise Undelivered(Trouble.ADDRESS_NOT_PUBLIC) from None

    def _headers(self, letter: Letter) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            KIND_HEADER: letter.kind,
            DELIVERY_HEADER: letter.delivery_id,
            SIGNATURE_HEADER: signature_header(letter.secrets, letter.body, self._clock()),
        }

    def _record(self, db: Session, delivery_id: str, attempt: Attempt, *, hung: bool) -> Verdict:
        delivery = db.get(WebhookDelivery, delivery_id, with_for_update=True)
        if delivery is None:
            # The webhook was deleted meanwhile, and its deliveries with it.
            return Done()
        webhook = db.get_one(Webhook, delivery.webhook_id, with_for_update=True)
        now = self._clock()
        delivery.attempts += 1
        delivery.attempted_at, delivery.next_attempt_at = now, None
        delivery.response_status = attempt.status
        delivery.error = None if attempt.trouble is None else attempt.trouble.value
        if attempt.was_taken:
            delivery.status = "delivered"
            webhook.failing_since = webhook.quiet_until = None
            return Done()
        return self._failed(db, webhook, delivery, now, hung=hung)

    def _failed(
        self, db: Session, webhook: Webhook, delivery: WebhookDelivery, now: datetime, *, hung: bool
    ) -> Verdict:
        webhook.failing_since = webhook.failing_since or now
        webhook.quiet_until = quiet_until(webhook.failing_since, now, hung=hung)
        following = next_attempt(delivery.attempts, delivery.queued_at, now)
        if delivery.response_status == HTTPStatus.GONE:
            following = None
            self._disable(db, webhook, GONE)
        elif following is None and is_hopeless(webhook.failing_since, now):
            self._disable(db, webhook, UNANSWERED)
        delivery.next_attempt_at = following
        if following is None:
            delivery.status = "failed"
            return Done()
        return Again(delivery.error or "", following - now)

    def _disable(self, db: Session, webhook: Webhook, reason: str) -> None:
        """Whoever made it hears of it, and so does the workspace's log."""
        if webhook.disabled_at is not None:
            return
        webhook.disabled_at, webhook.disabled_reason = self._clock(), reason
        log.warning("webhook disabled", webhook=webhook.id, reason=reason)
        self._mail(db, webhook)
        self._audit.record(
            db,
            PLATFORM,
            Category.WEBHOOKS,
            "WEBHOOK_DISABLED",
            f"webhook {webhook.id}, {reason}",
            access=place_of(db, webhook.workspace_id),
        )

    def _mail(self, db: Session, webhook: Webhook) -> None:
        """Not to somebody who has left: what goes on in the workspace is no business of theirs any more."""
        maker = db.scalars(
            select(User)
            .join(Membership, Membership.user_id == User.id)
            .where(User.id == webhook.created_by, Membership.workspace_id == webhook.workspace_id)
        ).one_or_none()
        if maker is not None:
            workspace = db.get_one(Workspace, webhook.workspace_id).name
            values = {"workspace": workspace, "host": urlsplit(webhook.url).hostname or ""}
            queue_mail(db, Template.WEBHOOK_DISABLED, maker.email, values, now=self._clock())


def body_of(event: WebhookEvent) -> bytes:
    """The same bytes at every attempt and for every webhook."""
    told = Told(
        id=event.id,
        sequence=event.sequence,
        kind=event.kind,
        workspace_id=event.workspace_id,
        created_at=event.created_at,
        data=event.payload,
    )
    return told.model_dump_json().encode()


def _done(_db: Session) -> Verdict:
    return Done()


def _put_off(db: Session, webhook_id: str, now: datetime, until: datetime) -> None:
    """Whatever else of the webhook's is due and in nobody's hands."""
    others = (
        select(Job.id, Job.subject)
        .join(WebhookDelivery, WebhookDelivery.id == Job.subject)
        .where(
            Job.kind == WEBHOOK,
            Job.done_at.is_(None),
            Job.dead_at.is_(None),
            Job.run_at <= now,
            Job.lease_until.is_(None),
            WebhookDelivery.webhook_id == webhook_id,
        )
        .order_by(Job.run_at, Job.id)
        .limit(PUT_OFF_AT_ONCE)
    )
    found = db.execute(others).all()
    for rows in chunks(found):
        jobs = update(Job).where(Job.id.in_([job_id for job_id, _ in rows])).values(run_at=until)
        ids = [delivery_id for _, delivery_id in rows]
        deliveries = update(WebhookDelivery).where(WebhookDelivery.id.in_(ids)).values(next_attempt_at=until)
        for change in (jobs, deliveries):
            db.execute(change.execution_options(synchronize_session=False))


def _give_up(db: Session, delivery_id: str, trouble: Trouble) -> Verdict:
    delivery = db.get(WebhookDelivery, delivery_id, with_for_update=True)
    if delivery is not None:
        delivery.status, delivery.error, delivery.next_attempt_at = "failed", trouble.value, None
    return Done()
