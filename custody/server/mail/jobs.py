"""Mail through the outbox: queued in the transaction of its cause, sent by a worker until the server accepts
it.

``{name}`` in a text stands for a value.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from hashlib import sha256
from string import Formatter
from typing import Final
from urllib.parse import urlsplit

import structlog
from sqlalchemy.orm import Session

from custody.common.text import UNSEEN
from custody.server.errors import CustodyError, MailRefused, MailUnavailable
from custody.server.jobs.outbox import Again, Dead, Finish, JobDone, Task, Verdict, enqueue
from custody.server.jobs.tidying import delete_where
from custody.server.mail.mailer import CannotMail, Mail, Mailer
from custody.server.store.models import JobRow

log = structlog.get_logger()
MAIL: Final = "mail"
# Mails about what waits for a person: module `waiting`.
WAITING: Final = "waiting-mail"
# Retries settle at one a minute: half a day. After that the mail is of no use.
MAX_ATTEMPTS: Final = 12 * 60
# Sent mails' jobs, which hold addresses, are kept while an operator may be asked about them.
SENT_MAIL_KEPT: Final = timedelta(days=1)
MAX_VALUE_LENGTH: Final = 200
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
# What a reader cannot see, line breaks and runs of blanks, at which a mail program
# breaks the line: a name must not add lines to the mail (P50).
_UNPRINTABLE = re.compile(rf"(?:{UNSEEN.pattern}|\s)+")
# Mail programs make links of text with one of these and no blank after it: example.org, http://, a@b; also of
# the full stops that browsers accept (UTS 46). Not of versions (1.14.1), but of four numbers.
_VERSION = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){1,2}(?![\w@/:]|\.\w)"
_LINKED = re.compile(rf"{_VERSION}|[.\u3002\uff0e\uff61@](?=\w)|[/\\](?=\S)|:(?=[^\W\d]|/)")


# Second factors, as mails and the audit log call them.
METHODS: Mapping[str, str] = {
    "none": "the password alone",
    "email": "e-mailed codes",
    "totp": "an authenticator's codes",
}


@dataclass(frozen=True)
class Text:
    """``link`` is added below the text, after the platform's public URL, where the operator has set one.

    ``made``: values that are secrets: they are created when the mail is sent and never stored in the outbox.
    """

    subject: str
    text: str
    link: str | None = None
    made: frozenset[str] = field(default=frozenset())

    @property
    def values(self) -> frozenset[str]:
        """The names of all values in the text."""
        parsed = [*Formatter().parse(self.subject), *Formatter().parse(self.text + (self.link or ""))]
        return frozenset(name for _, name, _, _ in parsed if name)

    @property
    def queued(self) -> frozenset[str]:
        """The names of the values that are stored in the outbox."""
        return self.values - self.made

    def fill(self, to: str, values: Mapping[str, str], public_url: str | None) -> Mail:
        text = self.text.format_map(values)
        if self.link is not None and public_url is not None:
            text += f"\n{public_url.rstrip('/')}{self.link.format_map(values)}\n"
        return Mail(to, self.subject.format_map(values), text)


class Template(Enum):
    """Every mail."""

    CODE = Text(
        "Your sign-in code",
        "Your sign-in code is {code}\n\n"
        "It was asked for at {time} UTC, and is good for {minutes} minutes and for that sign-in alone. "
        "If you are not signing in, change your password:\n"
        "somebody knows it.\n",
        made=frozenset({"code"}),
    )
    CONFIRMATION_CODE = Text(
        "Your code to confirm a change",
        "Your code to confirm a change on the console is {code}\n\n"
        "It was asked for at {time} UTC, and is good for {minutes} minutes, on the page that says so.\n"
        "If you are changing nothing, change your password:\n"
        "somebody acts in your name.\n",
        made=frozenset({"code"}),
    )
    WELCOME = Text(
        "Your custody account",
        "Your account is ready, and belongs to no organisation yet. If you were invited, follow the link of "
        "that mail.\nElse have an administrator invite this address, or send a request to found one.\n",
    )
    ALREADY_REGISTERED = Text(
        "You already have an account",
        "Somebody tried to register an account with this address. "
        "You have one already; nothing was changed.\n",
    )
    NOT_INVITED = Text(
        "No account was made",
        "Somebody, probably you, tried to register an account with this address. "
        "This platform has accounts for invited people only: have an administrator invite this address, and "
        "register then.\n",
    )
    PASSWORD_RESET = Text(
        "Choose a new password",
        "Somebody, probably you, asked for a new password for this account. "
        "To choose one, use this token:\n\n"
        "{token}\n\n"
        "It is good for {minutes} minutes and once. If you did not ask, do nothing: your password stays.\n",
        # A fragment is not sent to the server, and so stays out of logs (RFC 3986, section 3.5).
        link="/reset-password#token={token}",
        made=frozenset({"token", "minutes"}),
    )
    PASSWORD_CHANGED = Text(
        "Your password was changed",
        "The password of your account was changed, and your other sessions were ended.\n\n"
        "If this was not you, ask for a password reset at once and tell your administrator.\n",
    )
    SECOND_FACTOR_CHANGED = Text(
        "Your second factor was changed",
        "Signing in to your account now asks for: {method}.\n\n"
        "If this was not you, change your password at once and tell your administrator.\n",
    )
    WRONG_CODES = Text(
        "Wrong codes after your password",
        "Within an hour, somebody gave five wrong codes for your account, after its right password.\n\n"
        "If this was not you, change your password at once: somebody knows it.\n",
    )
    RECOVERY_CODE_USED = Text(
        "A recovery code was used",
        "Somebody signed in to your account with one of its recovery codes; {left} are left.\n\n"
        "If this was not you, change your password at once and enrol your authenticator again.\n",
    )
    INVITATION = Text(
        "You are invited to {organisation}",
        "{inviter} invites you to the workspace {workspace} of {organisation}, as {role}.\n\n"
        "Sign in with this address and accept or decline the invitation {invite_id}; "
        "if you have no account yet,\n"
        "register one with this address first. The invitation ends on {expires_at}.\n",
        link="/invitations/{invite_id}",
    )
    ONBOARDING_APPROVED = Text(
        "Your organisation is ready",
        "Your request was approved: {organisation} exists, with its first workspace, "
        "and you are its administrator.\n"
        "Sign in with this address, register your signing device, and invite the others.\n\n"
        "Note of the reviewer: {note}\n",
    )
    ONBOARDING_REJECTED = Text(
        "Your request was not approved",
        "Your request for {organisation} was not approved.\n\nNote of the reviewer: {note}\n",
    )
    WEBHOOK_DISABLED = Text(
        "A webhook of {workspace} was disabled",
        "The webhook to {host} that you made in the workspace {workspace} is told nothing more: "
        "the receiver failed for\n"
        "days, or said that it is gone.\n\n"
        "Look into its deliveries, repair the receiver, and enable the webhook again.\n",
    )
    SERVICE_SECRET = Text(
        "A secret of your service account {name} was made",
        "Somebody, probably you, made a new secret of the service account {name} in the workspace "
        "{workspace}.\nWhoever has it acts in your name, as far as the account may.\n\n"
        "If this was not you, change your password at once and revoke the service account.\n",
    )


# Creates and stores the secrets of a mail when it is sent, by address. None where it need not be sent any
# more.
Maker = Callable[[str], Mapping[str, str] | None]


def queue_mail(db: Session, template: Template, to: str, values: Mapping[str, str], *, now: datetime) -> None:
    """Queues a mail in the caller's transaction.

    ``values``: those of the template that are ``queued``; they hold no secrets, because they are stored. An
    identical mail to the same address that is still queued is sent once.
    """
    wanted = template.value.queued
    if set(values) != wanted:
        raise ValueError(f"the mail {template.name} takes {sorted(wanted)}, not {sorted(values)}")
    clean = {name: plain(value) for name, value in values.items()}
    payload = {"template": template.name, "to": to, "values": clean}
    digest = sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[:32]
    enqueue(db, MAIL, f"{template.name}:{digest}", now, payload)


def one_line(value: str) -> str:
    return _UNPRINTABLE.sub(" ", value).strip()[:MAX_VALUE_LENGTH]


def plain(value: str) -> str:
    """A user's text as it may appear in a mail: on one line, and with nothing that becomes a link."""
    return _LINKED.sub(lambda found: found[0] if found[0][0].isdecimal() else f"{found[0]} ", one_line(value))


def checked_url(text: str | None) -> str | None:
    """Links carry tokens, so they must lead to https or to this machine. Raises CannotMail."""
    if text is None:
        return None
    parts = urlsplit(text)
    is_here = parts.scheme == "http" and parts.hostname in LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or is_here) or parts.query or parts.fragment:
        raise CannotMail(
            f"{text!r} is not a URL for links in mails.",
            "Set CUSTODY_PUBLIC_URL to https://…, without anything after the path.",
        )
    return text


class MailJobs:
    """Handles mail jobs, at least once: a worker that dies after sending causes a second mail."""

    def __init__(self, mailer: Mailer, makers: Mapping[Template, Maker], public_url: str | None) -> None:
        """Raises CannotMail."""
        self.mailer = mailer
        self._makers = makers
        self._public_url = checked_url(public_url)

    def __call__(self, task: Task) -> Finish:
        verdict = self._tried(task)
        if isinstance(verdict, Dead):
            log.error("mail given up", template=task.payload["template"], job=task.id, reason=verdict.reason)
        return lambda _db: verdict

    def _tried(self, task: Task) -> Verdict:
        """Turns unexpected errors into a verdict: an exception would make the job return for ever."""
        try:
            return self._send(Template[task.payload["template"]], task)
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
            return JobDone()
        mail = template.value.fill(to, {**values, **made}, self._public_url)
        return sent(self.mailer, mail, task)


def sent(mailer: Mailer, mail: Mail, task: Task) -> Verdict:
    """Sends the job's mail, and says what becomes of the job."""
    try:
        mailer.send(mail)
    except MailRefused as error:
        return Dead(error.detail)
    except MailUnavailable as error:
        return _later(task, error.detail)
    return JobDone()


def _later(task: Task, reason: str) -> Verdict:
    return Dead(reason) if task.attempts >= MAX_ATTEMPTS else Again(reason)


# A part of `Tidying`.
forget_sent = delete_where(
    JobRow, lambda now: JobRow.kind.in_((MAIL, WAITING)) & (JobRow.done_at <= now - SENT_MAIL_KEPT)
)
