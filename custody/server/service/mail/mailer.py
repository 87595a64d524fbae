"""Mail: what is sent, and the embedded default that writes it into a folder."""

import os
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime
from pathlib import Path
from typing import Protocol

from custody.server.domain.credentials import new_id
from custody.server.domain.errors import MailRefused, MailUnavailable
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.meters import Meters

SENDER = "custody@localhost"
# RFC 5322, section 2.1.1: characters in a line, without its end.
MAX_LINE = 998


class CannotMail(Exception):
    """The settings for mail do not go together. ``hint`` says what to do."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


@dataclass(frozen=True)
class Mail:
    """``text`` may hold a one-time code: it stays out of repr by staying out of logs altogether."""

    to: str
    subject: str
    text: str

    def __repr__(self) -> str:
        return f"Mail(to={self.to!r}, subject={self.subject!r})"


class Mailer(Protocol):
    def send(self, mail: Mail) -> None:
        """Returns when somebody else has taken the mail over. Raises MailUnavailable, and MailRefused for good."""
        ...


class Letterhead:
    """Turns a mail into a message with its headers. Raises ValueError where one would break out of its header (P50)."""

    def __init__(self, sender: str, clock: Clock, random: RandomBytes) -> None:
        """Raises CannotMail."""
        self._sender = _sender(sender)
        self._clock = clock
        self._random = random

    @property
    def sender(self) -> Address:
        return self._sender

    def message(self, mail: Mail) -> EmailMessage:
        try:
            message = self._written(mail)
            # Some headers fail only where they are folded, which is for whoever sends: here nothing has begun yet.
            for policy in (SMTP, SMTPUTF8):
                message.as_bytes(policy=policy)
        except Exception as error:
            # The library stumbles over some addresses with whatever error its parser meets on the way (a@%|,<).
            raise ValueError("no header can hold this mail's address or subject") from error
        return message

    def _written(self, mail: Mail) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = address_of(mail.to)
        message["Subject"] = mail.subject
        message["Date"] = format_datetime(self._clock())
        # RFC 5322, section 3.6.4: unique, and nothing of this machine in it.
        message["Message-ID"] = f"<{new_id(self._random)}@{self._sender.domain}>"
        # RFC 3834, section 5: no out-of-office answer comes back.
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail.text, cte="7bit" if _goes_as_it_is(mail.text) else None)
        return message


class CountedMailer:
    """Any way of sending, with what became of it counted."""

    def __init__(self, mailer: Mailer, meters: Meters) -> None:
        self._mailer = mailer
        self._mails = meters.mails

    def send(self, mail: Mail) -> None:
        try:
            self._mailer.send(mail)
        except MailRefused:
            self._mails.labels("refused").inc()
            raise
        except MailUnavailable:
            self._mails.labels("unavailable").inc()
            raise
        self._mails.labels("sent").inc()


class FileMailer:
    """One ``.eml`` file for each message, readable by the owner alone; names sort by time."""

    def __init__(
        self, folder: Path, clock: Clock, random: RandomBytes, letterhead: Letterhead | None = None
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._random = random
        self._letterhead = letterhead or Letterhead(SENDER, clock, random)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def send(self, mail: Mail) -> None:
        try:
            message = self._letterhead.message(mail).as_bytes(policy=SMTP)
        except ValueError as error:
            raise MailRefused("No header can hold this mail's address or subject.") from error
        try:
            self._write(message)
        except OSError as error:
            raise MailUnavailable(f"The folder of mails cannot be written: {error.strerror}.") from error

    def _write(self, message: bytes) -> None:
        name = f"{self._clock():%Y%m%dT%H%M%S.%f}-{new_id(self._random)[:8]}.eml"
        target = self._folder / name
        # A reader of the folder sees whole messages only.
        draft = target.with_suffix(".part")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(message)
        draft.rename(target)


def _goes_as_it_is(text: str) -> bool:
    """Whether no encoding is needed. Quoted-printable breaks a link or a token for whoever reads the file as it stands."""
    return text.isascii() and all(len(line) <= MAX_LINE for line in text.split("\n"))


def address_of(text: str) -> Address:
    """Quoted where need be: an address may hold what a header would read as something else."""
    local, _, domain = text.rpartition("@")
    return Address(username=local, domain=domain)


def _sender(text: str) -> Address:
    try:
        found = address_of(text)
    except (ValueError, IndexError):
        found = None
    if found is None or not found.username or not found.domain:
        raise CannotMail(
            f"{text!r} is no address to send mail from.", "Set CUSTODY_MAIL_FROM to one, name@domain."
        )
    return found
