"""Mail through the outbox: written with what it tells of, sent by a worker until the mail server has taken it."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

import structlog
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.server.domain.errors import CustodyError, MailRefused, MailUnavailable
from custody.server.service.jobs.outbox import Again, Dead, Done, Finish, Task, Verdict, enqueue
from custody.server.service.jobs.tidying import BATCH
from custody.server.service.mail.mailer import CannotMail, Mailer
from custody.server.service.mail.texts import TEXTS, Template
from custody.server.store.models import Job

log = structlog.get_logger()

MAIL: Final = "mail"
# Retries settle at one a minute. A mail server is seldom away for longer, and half a day later nobody waits for the mail.
MAX_ATTEMPTS: Final = 12 * 60
# Whom a mail went to is remembered for as long as an operator may be asked where it is.
SENT_MAIL_KEPT: Final = timedelta(days=1)
MAX_VALUE_LENGTH: Final = 200
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
# Line breaks, controls and changes of the direction of writing: a name must not write lines of the mail (P50).
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")

# The secrets that a mail carries, made and recorded at the moment of sending; None where there is nothing to send any more.
Maker = Callable[[str], Mapping[str, str] | None]


def queue_mail(db: Session, template: Template, to: str, values: Mapping[str, str], *, now: datetime) -> None:
    """Sends a mail after the caller's transaction, and only if that commits.

    ``values`` are the template's (``TEXTS[template].queued``), and no secrets: they wait in the database. The same mail
    to the same person, still waiting, is sent once.
    """
    wanted = TEXTS[template].queued
    if set(values) != wanted:
        raise ValueError(f"the mail {template} takes {sorted(wanted)}, not {sorted(values)}")
    clean = {name: one_line(value) for name, value in values.items()}
    payload = {"template": template.value, "to": to, "values": clean}
    enqueue(db, MAIL, _subject(payload), now, payload)


def one_line(value: str) -> str:
    """What somebody wrote, as it may stand in a mail."""
    return _UNPRINTABLE.sub(" ", value).strip()[:MAX_VALUE_LENGTH]


def _checked_url(text: str | None) -> str | None:
    """Links carry tokens: they lead to https, or to this machine."""
    if text is None:
        return None
    parts = urlsplit(text)
    is_here = parts.scheme == "http" and parts.hostname in LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or is_here) or parts.query or parts.fragment:
        raise CannotMail(
            f"{text!r} is no address for links in mails.",
            "Set CUSTODY_PUBLIC_URL to https://…, without anything after the path.",
        )
    return text


def _subject(payload: Mapping[str, object]) -> str:
    digest = sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[:32]
    return f"{payload['template']}:{digest}"


class MailJobs:
    """The handler of mail jobs. At least once: a worker that dies after sending makes a second mail, never none."""

    def __init__(self, mailer: Mailer, makers: Mapping[Template, Maker], public_url: str | None) -> None:
        """Raises CannotMail."""
        self._mailer = mailer
        self._makers = makers
        self._public_url = _checked_url(public_url)

    def __call__(self, task: Task) -> Finish:
        verdict = self._tried(task)
        if isinstance(verdict, Dead):
            log.error("mail given up", template=task.payload["template"], job=task.id, reason=verdict.reason)
        return lambda _db: verdict

    def _tried(self, task: Task) -> Verdict:
        """A mistake of ours in one mail must not stop the others: raised, it would come back each minute, for ever."""
        try:
            return self._send(Template(task.payload["template"]), task)
        except CustodyError:
            raise
        except Exception as error:
            log.exception("mail failed", template=task.payload["template"], job=task.id)
            return _later(task, f"The mail could not be written ({type(error).__name__}).")

    def _send(self, template: Template, task: Task) -> Verdict:
        to, values = task.payload["to"], task.payload["values"]
        maker = self._makers.get(template)
        made = maker(to) if maker else {}
        if made is None:
            return Done()
        try:
            self._mailer.send(TEXTS[template].fill(to, {**values, **made}, self._public_url))
        except MailRefused as error:
            return Dead(error.detail)
        except MailUnavailable as error:
            return _later(task, error.detail)
        return Done()


def _later(task: Task, reason: str) -> Verdict:
    return Dead(reason) if task.attempts >= MAX_ATTEMPTS else Again(reason)


def forget_sent(db: Session, now: datetime) -> int:
    """A part of `Tidying`."""
    over = select(Job.id).where(Job.kind == MAIL, Job.done_at <= now - SENT_MAIL_KEPT)
    found = db.scalars(over.limit(BATCH)).all()
    db.execute(delete(Job).where(Job.id.in_(found)))
    return len(found)
