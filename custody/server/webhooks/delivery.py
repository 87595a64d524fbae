"""Delivering events: one job each, at least once, until the receiver accepts it or three days have passed;
and when their log is deleted.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import structlog
from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from custody.schemas.webhooks import WebhookEvent as Told
from custody.schemas.webhooks import signed_headers
from custody.server.audit.log import AuditLog
from custody.server.jobs.outbox import IS_OPEN, Again, Finish, JobDone, Task, Verdict
from custody.server.jobs.tidying import Part, delete_where
from custody.server.mail.jobs import Template, queue_mail
from custody.server.requests.rates import Throttle
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.ports import Clock
from custody.server.rules.webhooks import (
    HANGS_FROM,
    BadUrl,
    is_hopeless,
    next_attempt,
    quiet_until,
    read_url,
)
from custody.server.secrets import Purpose, Secrets
from custody.server.shown import shape_of
from custody.server.store import Store
from custody.server.store.models import (
    JobRow,
    MembershipRow,
    UserRow,
    WebhookDeliveryRow,
    WebhookEventRow,
    WebhookRow,
    WorkspaceRow,
)
from custody.server.store.store import chunks
from custody.server.vaults.stored import place_of
from custody.server.webhooks.events import WEBHOOK
from custody.server.webhooks.sending import DeliveryTrouble, Sender, Undelivered

log = structlog.get_logger()
USER_AGENT: Final = "custody-webhooks/1"
GONE: Final = "gone"
UNANSWERED: Final = "unanswered"
# Without the URL: a receiver's path often holds a secret (P49).
DISABLED = Event("WEBHOOK_DISABLED", "The webhook {webhook} was switched off: {reason}", Category.WEBHOOKS)
# Postponed together, in one transaction, instead of one lease and two transactions each.
PUT_OFF_AT_ONCE: Final = 1_000
# Worker seconds of a workspace in a minute, so that no tenant starves the others (P51): a receiver may take
# ten seconds for each response, and a member may request any number of deliveries. They are some thousand
# deliveries to receivers that answer fast, or six to receivers that hang; and one of the four workers that a
# process has by default.
SHARE_SECONDS: Final = 60
# The least that an attempt costs: a transaction for its lease and one for its record.
LEAST_SECONDS: Final = 0.05


# The outcome of one: a response's status, or the trouble before there was one, or which it means.
Attempt = tuple[int | None, DeliveryTrouble | None]


@dataclass(eq=False)
class WebhookJobs:
    """Handles webhook jobs. If a worker dies between the response and its record, the event is delivered
    again with the same id.
    """

    store: Store
    clock: Clock
    audit: AuditLog
    secrets: Secrets
    sender: Sender
    allowed: frozenset[str]
    timer: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # An attempt counts when it ends.
        self._shares = Throttle(self.clock, limit=SHARE_SECONDS)

    def __call__(self, task: Task) -> Finish:
        ready = self._find(task.subject)
        if not isinstance(ready, tuple):
            return ready
        webhook, event = ready
        began_at = self.timer()
        try:
            attempt = self._attempt(webhook, event)
        finally:
            seconds = self.timer() - began_at
            self._shares.spend(webhook.workspace_id, max(LEAST_SECONDS, seconds))
        hung = timedelta(seconds=seconds) >= HANGS_FROM
        return lambda db: self._record(db, task.subject, attempt, hung=hung)

    def _find(self, delivery_id: str) -> tuple[WebhookRow, WebhookEventRow] | Finish:
        """What to send where, or how the job ends without sending. Read in a snapshot, so that sending holds
        no transaction.
        """
        now = self.clock()
        with self.store.read() as db:
            delivery = db.get(WebhookDeliveryRow, delivery_id)
            if delivery is None or delivery.status != "pending":
                return _done
            webhook = db.get_one(WebhookRow, delivery.webhook_id)
            if webhook.disabled_at is not None:
                return lambda db: _give_up(db, delivery_id, DeliveryTrouble.DISABLED)
            if webhook.quiet_until is not None and webhook.quiet_until > now:
                return self._postponed(delivery_id, webhook.quiet_until, "the receiver failed recently")
            if wait := self._shares.wait(webhook.workspace_id):
                until = now + timedelta(seconds=wait)
                return self._postponed(delivery_id, until, "the workspace's receivers used up their share")
            return webhook, db.get_one(WebhookEventRow, delivery.event_id)

    def _postponed(self, delivery_id: str, until: datetime, why: str) -> Finish:
        """Not an attempt. Everything else that is due for the webhook is postponed too."""

        def finish(db: Session) -> Verdict:
            delivery = db.get(WebhookDeliveryRow, delivery_id, with_for_update=True)
            if delivery is None:
                return JobDone()
            delivery.next_attempt_at = until
            now = self.clock()
            _put_off(db, delivery.webhook_id, now, until)
            return Again(why, until - now)

        return finish

    def _attempt(self, webhook: WebhookRow, event: WebhookEventRow) -> Attempt:
        now, body = self.clock(), body_of(event)
        secrets = _that_sign(self.secrets, webhook, now)
        if not secrets:
            return None, DeliveryTrouble.SECRET_UNREADABLE
        signed = signed_headers(secrets, event.id, body, now)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **signed}
        try:
            # The stored URL is checked again: the operator may allow fewer hosts than before.
            url = read_url(webhook.url, self.allowed)
            status = self.sender.ask("POST", url, body, headers).status
        except BadUrl:
            return None, DeliveryTrouble.ADDRESS_NOT_PUBLIC
        except Undelivered as error:
            return None, error.trouble
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return status, None
        is_redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
        return status, DeliveryTrouble.REDIRECTED if is_redirect else DeliveryTrouble.REFUSED

    def _record(self, db: Session, delivery_id: str, attempt: Attempt, *, hung: bool) -> Verdict:
        delivery = db.get(WebhookDeliveryRow, delivery_id, with_for_update=True)
        if delivery is None:
            # The webhook was deleted in the meantime, and its deliveries with it.
            return JobDone()
        webhook = db.get_one(WebhookRow, delivery.webhook_id, with_for_update=True)
        now = self.clock()
        delivery.attempts += 1
        delivery.attempted_at, delivery.next_attempt_at = now, None
        delivery.response_status, trouble = attempt
        delivery.error = None if trouble is None else trouble.value
        if trouble is None:
            delivery.status = "delivered"
            webhook.failing_since = webhook.quiet_until = None
            return JobDone()
        return self._failed(db, webhook, delivery, now, hung=hung)

    def _failed(
        self, db: Session, webhook: WebhookRow, delivery: WebhookDeliveryRow, now: datetime, *, hung: bool
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
            return JobDone()
        return Again(delivery.error or "", following - now)

    def _disable(self, db: Session, webhook: WebhookRow, reason: str) -> None:
        """Tells the member who created it by mail, and records it."""
        if webhook.disabled_at is not None:
            return
        webhook.disabled_at, webhook.disabled_reason = self.clock(), reason
        log.warning("webhook disabled", webhook=webhook.id, reason=reason)
        self._mail(db, webhook)
        access = place_of(db, webhook.workspace_id)
        self.audit.record(db, PLATFORM, DISABLED, access, webhook=webhook.id, reason=reason)

    def _mail(self, db: Session, webhook: WebhookRow) -> None:
        """Not to a creator who has left: the workspace's events are no longer theirs to know."""
        maker = db.scalars(
            select(UserRow)
            .join(MembershipRow, MembershipRow.user_id == UserRow.id)
            .where(UserRow.id == webhook.created_by, MembershipRow.workspace_id == webhook.workspace_id)
        ).one_or_none()
        if maker is not None:
            workspace = db.get_one(WorkspaceRow, webhook.workspace_id).name
            values = {"workspace": workspace, "host": urlsplit(webhook.url).hostname or ""}
            queue_mail(db, Template.WEBHOOK_DISABLED, maker.email, values, now=self.clock())


def _that_sign(secrets: Secrets, webhook: WebhookRow, now: datetime) -> tuple[str, ...]:
    """The newest first, then the former one while it is still valid; without those that cannot be read."""
    is_over = webhook.old_secret_until is None or webhook.old_secret_until <= now
    sealed = [webhook.sealed_secret, None if is_over else webhook.sealed_old_secret]
    opened = (secrets.open(Purpose.WEBHOOK, each) for each in sealed if each is not None)
    return tuple(each.decode() for each in opened if each is not None)


def body_of(event: WebhookEventRow) -> bytes:
    """The same bytes for every attempt and every webhook."""
    return shape_of(Told, event, data=event.payload).model_dump_json().encode()


def _done(_db: Session) -> Verdict:
    return JobDone()


def _put_off(db: Session, webhook_id: str, now: datetime, until: datetime) -> None:
    """Postpones every other due job of the webhook that no worker holds."""
    others = (
        select(JobRow.id, JobRow.subject)
        .join(WebhookDeliveryRow, WebhookDeliveryRow.id == JobRow.subject)
        .where(
            JobRow.kind == WEBHOOK,
            IS_OPEN,
            JobRow.run_at <= now,
            JobRow.lease_until.is_(None),
            WebhookDeliveryRow.webhook_id == webhook_id,
        )
        .order_by(JobRow.run_at, JobRow.id)
        .limit(PUT_OFF_AT_ONCE)
    )
    others_due = db.execute(others).all()
    for rows in chunks(others_due):
        jobs = update(JobRow).where(JobRow.id.in_([job_id for job_id, _ in rows])).values(run_at=until)
        ids = [delivery_id for _, delivery_id in rows]
        deliveries = (
            update(WebhookDeliveryRow).where(WebhookDeliveryRow.id.in_(ids)).values(next_attempt_at=until)
        )
        for change in (jobs, deliveries):
            db.execute(change.execution_options(synchronize_session=False))


def _give_up(db: Session, delivery_id: str, trouble: DeliveryTrouble) -> Verdict:
    delivery = db.get(WebhookDeliveryRow, delivery_id, with_for_update=True)
    if delivery is not None:
        delivery.status, delivery.error, delivery.next_attempt_at = "failed", trouble.value, None
    return JobDone()


DELIVERIES_KEPT: Final = timedelta(days=30)
# The delivery's row has all that its job has.
JOBS_KEPT: Final = timedelta(days=1)


_NEWER = aliased(WebhookEventRow)
_LAST = select(func.max(_NEWER.sequence)).where(_NEWER.workspace_id == WebhookEventRow.workspace_id)
_IS_TOLD = select(WebhookDeliveryRow.id).where(WebhookDeliveryRow.event_id == WebhookEventRow.id).exists()
# Each workspace's last event is kept, which the next one's sequence is counted from.
_IS_NEEDED = _IS_TOLD | (WebhookEventRow.sequence >= _LAST.scalar_subquery())


def _is_over(now: datetime) -> ColumnElement[bool]:
    ended = or_(JobRow.done_at <= now - JOBS_KEPT, JobRow.dead_at <= now - DELIVERIES_KEPT)
    return and_(JobRow.kind == WEBHOOK, ended)


EXPIRED_LOGS: Final[tuple[Part, ...]] = (
    delete_where(JobRow, _is_over),
    # Not a delivery that a member has just asked for again.
    delete_where(
        WebhookDeliveryRow,
        lambda now: and_(
            WebhookDeliveryRow.created_at <= now - DELIVERIES_KEPT, WebhookDeliveryRow.status != "pending"
        ),
    ),
    delete_where(
        WebhookEventRow, lambda now: (WebhookEventRow.created_at <= now - DELIVERIES_KEPT) & ~_IS_NEEDED
    ),
)
