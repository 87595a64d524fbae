"""Delivering events: one job each, at least once, until the receiver accepts it or three days have passed;
and when their log is deleted.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import structlog
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from custody.schemas.common import format_time
from custody.schemas.webhooks import MAX_SCREENING_ANSWER, EventKind, ScreeningAnswer, signed_headers
from custody.schemas.webhooks import WebhookEvent as Told
from custody.server.jobs.outbox import IS_OPEN, Again, Finish, JobDone, Task, Verdict, delay_after
from custody.server.jobs.tidying import Part, delete_where
from custody.server.mail.jobs import Template, queue_mail
from custody.server.proposals.screening import answer_by, hear, is_open
from custody.server.requests.rates import Throttle, UnderWay
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.webhooks import (
    HANGS_FROM,
    BadUrl,
    is_hopeless,
    next_attempt,
    quiet_until,
    read_url,
)
from custody.server.secrets import Purpose, Secrets
from custody.server.services import Tools
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
from custody.server.webhooks.events import QUESTION, WEBHOOK
from custody.server.webhooks.sending import DeliveryTrouble, Sender, Undelivered
from multisig.canonical_json import JsonError, parse_json

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


# So many questions of an organisation are asked at once, and one of a webhook: behind slow receivers, others'
# questions do not wait. What comes meanwhile is looked at again after `BUSY`.
ASKED_AT_ONCE: Final = 2
BUSY: Final = timedelta(seconds=1)
# A disabled webhook is looked at again after this.
DISABLED_FOR: Final = timedelta(minutes=1)
# Then the platform called nobody: the program was not asked, and its time does not begin.
NOT_ASKED: Final = frozenset({DeliveryTrouble.SECRET_UNREADABLE, DeliveryTrouble.ADDRESS_NOT_PUBLIC})


class _Busy(Exception):
    """Others are being asked."""


class Attempt(NamedTuple):
    """The outcome of one: a response's status, or the trouble before there was one, or which it means; and
    what the response to a `_question` says.
    """

    status: int | None
    trouble: DeliveryTrouble | None
    answer: ScreeningAnswer | None = None


class Ready(NamedTuple):
    """What is sent where; of a question, whose share it is of, and the deadline that it carries."""

    webhook: WebhookRow
    event: WebhookEventRow
    organisation_id: int = 0
    answer_by: datetime | None = None


@dataclass(eq=False)
class WebhookJobs:
    """Handles webhook jobs. If a worker dies between the response and its record, the event is delivered
    again with the same id.
    """

    store: Store
    tools: Tools
    sender: Sender
    timer: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # An attempt counts when it ends.
        self._shares = Throttle(self.tools.clock, limit=SHARE_SECONDS)
        # Questions, by webhook, and by organisation.
        self._asking = UnderWay()

    def __call__(self, task: Task) -> Finish:
        ready = self._find(task)
        if not isinstance(ready, Ready):
            return ready
        if ready.answer_by is None:
            return self._sent(task.subject, ready)
        try:
            with (
                self._asking.one(ready.webhook.id, 1, _Busy()),
                self._asking.one(ready.organisation_id, ASKED_AT_ONCE, _Busy()),
            ):
                return self._sent(task.subject, ready)
        except _Busy:
            until = self.tools.clock() + BUSY
            return self._postponed(task, until, "others are being asked")

    def _sent(self, delivery_id: str, ready: Ready) -> Finish:
        began_at = self.timer()
        try:
            attempt = self._attempt(ready)
        finally:
            seconds = self.timer() - began_at
            if ready.answer_by is None:
                self._shares.spend(ready.webhook.workspace_id, max(LEAST_SECONDS, seconds))
        hung = timedelta(seconds=seconds) >= HANGS_FROM
        return lambda db: self._record(db, delivery_id, ready, attempt, hung=hung)

    def _find(self, task: Task) -> Ready | Finish:
        """What to send where, or how the job ends without sending. Read in a snapshot, so that sending holds
        no transaction.
        """
        now = self.tools.clock()
        with self.store.read() as db:
            delivery = db.get(WebhookDeliveryRow, task.subject)
            if delivery is None or delivery.status != "pending":
                return lambda _db: JobDone()
            webhook = db.get_one(WebhookRow, delivery.webhook_id)
            event = db.get_one(WebhookEventRow, delivery.event_id)
            if _is_question(event):
                return self._find_question(db, task, delivery, Ready(webhook, event))
            if webhook.disabled_at is not None:
                return lambda db: _give_up(db, task.subject, DeliveryTrouble.DISABLED)
            if webhook.quiet_until is not None and webhook.quiet_until > now:
                return self._postponed(task, webhook.quiet_until, "the receiver failed recently")
            if wait := self._shares.wait(webhook.workspace_id):
                until = now + timedelta(seconds=wait)
                return self._postponed(task, until, "the workspace's receivers used up their share")
            return Ready(webhook, event)

    def _find_question(
        self, db: Session, task: Task, delivery: WebhookDeliveryRow, ready: Ready
    ) -> Ready | Finish:
        """However the webhook's other deliveries fare. What a disabled webhook was not asked waits for it;
        what it was asked before lets those go first that it was not.
        """
        now, webhook, proposal_id = self.tools.clock(), ready.webhook, ready.event.payload["psbt_id"]
        if webhook.disabled_at is not None:
            if is_open(db, proposal_id, webhook.id):
                return self._postponed(task, now + DISABLED_FOR, "the webhook is disabled")
            return lambda db: _give_up(db, task.subject, DeliveryTrouble.DISABLED)
        unasked = _waiting(QUESTION, webhook.id, now + BUSY).where(WebhookDeliveryRow.attempts == 0)
        if delivery.attempts and db.execute(unasked.limit(1)).first() is not None:
            return lambda _db: Again("others were never asked", BUSY)
        # The same for each attempt, once the first is recorded.
        until = answer_by(db, proposal_id, now)
        return ready._replace(
            organisation_id=place_of(db, webhook.workspace_id).organisation_id, answer_by=until
        )

    def _postponed(self, task: Task, until: datetime, why: str) -> Finish:
        """Not an attempt. Every other such job that is due for the webhook is postponed too."""

        def finish(db: Session) -> Verdict:
            delivery = db.get(WebhookDeliveryRow, task.subject, with_for_update=True)
            if delivery is None:
                return JobDone()
            delivery.next_attempt_at = until
            now = self.tools.clock()
            _put_off(db, task.kind, delivery.webhook_id, now, until)
            return Again(why, until - now)

        return finish

    def _attempt(self, ready: Ready) -> Attempt:
        now, webhook, event = self.tools.clock(), ready.webhook, ready.event
        data = event.payload
        if ready.answer_by is not None:
            data |= {"answer_by": format_time(ready.answer_by)}
        # The same bytes for every attempt and every webhook.
        body = shape_of(Told, event, data=data).model_dump_json().encode()
        secrets = _that_sign(self.tools.secrets, webhook, now)
        if not secrets:
            return Attempt(None, DeliveryTrouble.SECRET_UNREADABLE)
        signed = signed_headers(secrets, event.id, body, now)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **signed}
        try:
            # The stored URL is checked again: the operator may allow fewer hosts than before.
            url = read_url(webhook.url, self.tools.webhook_hosts)
            most = MAX_SCREENING_ANSWER if _is_question(event) else 0
            answered = self.sender.ask("POST", url, body, headers, most)
        except BadUrl:
            return Attempt(None, DeliveryTrouble.ADDRESS_NOT_PUBLIC)
        except Undelivered as error:
            return Attempt(None, error.trouble)
        status = answered.status
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            answer = read_screening(answered.body) if most else None
            return Attempt(status, DeliveryTrouble.BAD_ANSWER if most and answer is None else None, answer)
        is_redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
        return Attempt(status, DeliveryTrouble.REDIRECTED if is_redirect else DeliveryTrouble.REFUSED)

    def _record(
        self, db: Session, delivery_id: str, ready: Ready, attempt: Attempt, *, hung: bool
    ) -> Verdict:
        delivery = db.get(WebhookDeliveryRow, delivery_id, with_for_update=True)
        if delivery is None:
            # The webhook was deleted in the meantime, and its deliveries with it.
            return JobDone()
        webhook = db.get_one(WebhookRow, delivery.webhook_id, with_for_update=True)
        now = self.tools.clock()
        delivery.attempts += 1
        delivery.attempted_at = now
        delivery.response_status, trouble = attempt.status, attempt.trouble
        delivery.error = None if trouble is None else trouble.value
        delivery.next_attempt_at = self._following(db, delivery, ready, attempt, now)
        if trouble is None:
            webhook.failing_since = webhook.quiet_until = None
        else:
            self._failed(db, webhook, delivery, now, hung=hung)
        if delivery.next_attempt_at is not None:
            return Again(delivery.error or "it holds the proposal", delivery.next_attempt_at - now)
        delivery.status = "delivered" if trouble is None else "failed"
        return JobDone()

    def _following(
        self,
        db: Session,
        delivery: WebhookDeliveryRow,
        ready: Ready,
        attempt: Attempt,
        now: datetime,
    ) -> datetime | None:
        """When to try again; None where that is over."""
        if ready.answer_by is not None:
            proposal_id = ready.event.payload["psbt_id"]
            soon = now + delay_after(delivery.attempts, delivery.id)
            if not is_open(db, proposal_id, delivery.webhook_id, locked=True):
                return None
            if attempt.trouble in NOT_ASKED:
                return soon
            until = hear(db, self.tools, proposal_id, attempt.answer, ready.answer_by)
            return soon if until is not None and soon < until else None
        return None if attempt.trouble is None else next_attempt(delivery.attempts, delivery.queued_at, now)

    def _failed(
        self, db: Session, webhook: WebhookRow, delivery: WebhookDeliveryRow, now: datetime, *, hung: bool
    ) -> None:
        webhook.failing_since = webhook.failing_since or now
        webhook.quiet_until = quiet_until(webhook.failing_since, now, hung=hung)
        if delivery.response_status == HTTPStatus.GONE:
            delivery.next_attempt_at = None
            self._disable(db, webhook, GONE)
        elif delivery.next_attempt_at is None and is_hopeless(webhook.failing_since, now):
            self._disable(db, webhook, UNANSWERED)

    def _disable(self, db: Session, webhook: WebhookRow, reason: str) -> None:
        """Tells the member who created it by mail, and records it."""
        if webhook.disabled_at is not None:
            return
        webhook.disabled_at, webhook.disabled_reason = self.tools.clock(), reason
        log.warning("webhook disabled", webhook=webhook.id, reason=reason)
        self._mail(db, webhook)
        access = place_of(db, webhook.workspace_id)
        self.tools.audit.record(db, PLATFORM, DISABLED, access, webhook=webhook.id, reason=reason)

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
            queue_mail(db, Template.WEBHOOK_DISABLED, maker.email, values, now=self.tools.clock())


def _that_sign(secrets: Secrets, webhook: WebhookRow, now: datetime) -> tuple[str, ...]:
    """The newest first, then the former one while it is still valid; without those that cannot be read."""
    is_over = webhook.old_secret_until is None or webhook.old_secret_until <= now
    sealed = [webhook.sealed_secret, None if is_over else webhook.sealed_old_secret]
    opened = (secrets.open(Purpose.WEBHOOK, each) for each in sealed if each is not None)
    return tuple(each.decode() for each in opened if each is not None)


def _is_question(event: WebhookEventRow) -> bool:
    """Whether its receiver's answer decides something."""
    return event.kind == EventKind.PROPOSAL_SCREENING.value


def read_screening(body: bytes) -> ScreeningAnswer | None:
    """None where it is no decision. What is no UTF-8 can stand in a reason, and undoes none."""
    with suppress(JsonError, ValidationError):
        readable = body.decode(errors="replace").encode()
        return ScreeningAnswer.model_validate(parse_json(readable, fractions=True))
    return None


def _waiting(kind: str, webhook_id: str, by: datetime) -> Select[int, str]:
    """The jobs of this kind for the webhook that are due by then, and that no worker holds."""
    return (
        select(JobRow.id, JobRow.subject)
        .join(WebhookDeliveryRow, WebhookDeliveryRow.id == JobRow.subject)
        .where(
            JobRow.kind == kind,
            IS_OPEN,
            JobRow.run_at <= by,
            JobRow.lease_until.is_(None),
            WebhookDeliveryRow.webhook_id == webhook_id,
        )
    )


def _put_off(db: Session, kind: str, webhook_id: str, now: datetime, until: datetime) -> None:
    others = _waiting(kind, webhook_id, now).order_by(JobRow.run_at, JobRow.id).limit(PUT_OFF_AT_ONCE)
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
    return and_(JobRow.kind.in_([WEBHOOK, QUESTION]), ended)


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
