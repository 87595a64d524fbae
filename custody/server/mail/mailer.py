"""Sending mail: into a folder (the default), or through the operator's mail server."""

import os
import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import idna
import structlog
from pydantic import SecretStr

from custody.common.deadlines import Deadline
from custody.common.exchange import is_loopback
from custody.server.errors import MailRefused, MailUnavailable, Misconfigured
from custody.server.rules.credentials import new_id
from custody.server.rules.ports import Clock, RandomBytes

if TYPE_CHECKING:
    from custody.server.meters import Meters

log = structlog.get_logger()

# RFC 5322, section 2.1.1: characters in a line, without its end.
MAX_LINE = 998
# RFC 6409: submission with STARTTLS; RFC 8314: submission over TLS from the start.
DEFAULT_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
# Deadlines of one answer and of a whole mail: a sign-in waits for its code, and the SDK for twenty seconds.
ANSWER_SECONDS: Final = 5.0
MAIL_SECONDS: Final = 15.0
# RFC 5321, section 4.2.1: 5xx is permanent, 4xx temporary.
FOR_GOOD: Final = range(500, 600)


class CannotMail(Misconfigured):
    """The settings for mail are inconsistent. ``hint`` says what to do."""


@dataclass(frozen=True)
class Mail:
    """``text`` may hold a one-time code: neither repr nor a log shows it."""

    to: str
    subject: str
    text: str = field(repr=False)


class Mailer(Protocol):
    def send(self, mail: Mail) -> None:
        """Returns when a server or the file system has accepted the mail. Raises MailUnavailable, or
        MailRefused for good.
        """
        ...


class MessageBuilder:
    """Turns a mail into a message with headers. Raises ValueError where a value would break out of its header
    (P50).
    """

    def __init__(self, sender: str, clock: Clock, random: RandomBytes) -> None:
        """Raises CannotMail."""
        self._sender = _sender(sender)
        self._clock = clock
        self._random = random

    def message(self, mail: Mail) -> EmailMessage:
        try:
            message = self._written(mail)
            # Some headers fail only when they are folded at sending: fail here, before anything is sent.
            for policy in (SMTP, SMTPUTF8):
                message.as_bytes(policy=policy)
        except Exception as error:
            # The library raises any of its parser's errors on some addresses (a@%|,<).
            raise ValueError("no header can hold this mail's address or subject") from error
        return message

    def _written(self, mail: Mail) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = address_of(mail.to)
        message["Subject"] = mail.subject
        message["Date"] = format_datetime(self._clock())
        # RFC 5322, section 3.6.4: unique, without this machine's name.
        message["Message-ID"] = f"<{new_id(self._random)}@{self._sender.domain}>"
        # RFC 3834, section 5: suppresses out-of-office answers.
        message["Auto-Submitted"] = "auto-generated"
        # As it is where it can be: quoted-printable breaks links and tokens for a reader of the file.
        is_plain = mail.text.isascii() and all(len(line) <= MAX_LINE for line in mail.text.split("\n"))
        message.set_content(mail.text, cte="7bit" if is_plain else None)
        return message


class CountedMailer:
    """Wraps a mailer and counts its outcomes."""

    def __init__(self, mailer: Mailer, meters: "Meters") -> None:
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


class FileMailer(MessageBuilder):
    """One ``.eml`` file for each message, readable by the owner alone; names sort by time."""

    def __init__(self, folder: Path, sender: str, clock: Clock, random: RandomBytes) -> None:
        super().__init__(sender, clock, random)
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def send(self, mail: Mail) -> None:
        try:
            # A mailbox beyond ASCII stands in a header only as it is (RFC 6532).
            policy = SMTP if mail.to.rpartition("@")[0].isascii() else SMTPUTF8
            message = self.message(mail).as_bytes(policy=policy)
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


def address_of(text: str) -> Address:
    """Quotes the local part where it has characters that are special in a header. A domain of other letters
    is written in ASCII (RFC 5891): the library would make an encoded word of it, which is no domain.
    """
    local, _, domain = text.rpartition("@")
    return Address(username=local, domain=domain if domain.isascii() else idna.encode(domain).decode())


def _sender(text: str) -> Address:
    try:
        address = address_of(text)
    except (ValueError, IndexError):
        address = None
    if address is None or not address.username or not address.domain:
        raise CannotMail(f"{text!r} is not a mail address.", "Set CUSTODY_MAIL_FROM to one, name@domain.")
    return address


@dataclass(frozen=True)
class SmtpServer:
    """``ca_file``: a private CA that replaces the system's. Raises CannotMail."""

    host: str
    tls: Literal["starttls", "tls", "none"] = "starttls"
    port: int | None = None
    username: str | None = None
    password: SecretStr | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        if self.tls == "none" and not is_loopback(self.host):
            raise CannotMail(
                f"Mail to {self.host} would travel unencrypted, sign-in codes and all.",
                "Set CUSTODY_SMTP_TLS to starttls or tls; none is for a mail server on this machine.",
            )
        if (self.username is None) != (self.password is None):
            raise CannotMail(
                "A mail server needs both a user name and a password, or neither.",
                "Set both CUSTODY_SMTP_USERNAME and CUSTODY_SMTP_PASSWORD, or neither.",
            )


class SmtpMailer(MessageBuilder):
    """Opens a connection for each mail: mails are few, and a server would close an idle connection."""

    def __init__(self, server: SmtpServer, sender: str, clock: Clock, random: RandomBytes) -> None:
        super().__init__(sender, clock, random)
        self._server = server
        self._context = ssl.create_default_context(cafile=server.ca_file)

    def send(self, mail: Mail) -> None:
        with _trouble_named():
            message = self.message(mail)
            sender, to = self._sender.addr_spec, address_of(mail.to).addr_spec
            with self._connection() as connection:
                connection.send_message(message, sender, [to])

    @contextmanager
    def _connection(self) -> Iterator[smtplib.SMTP]:
        # Without a name smtplib would look up this machine's and send it.
        with Deadline(MAIL_SECONDS) as deadline:
            connection = _Connection(self._server, self._context, self._sender.domain, deadline)
            try:
                self._prove_both(connection)
                yield connection
                # The mail is accepted by now: an error at QUIT would send it twice.
                with suppress(smtplib.SMTPException, OSError):
                    connection.quit()
            finally:
                connection.close()

    def _prove_both(self, connection: smtplib.SMTP) -> None:
        """Verifies the server by its certificate, then signs in. Nothing is sent in the clear where a
        middleman hides STARTTLS.
        """
        try:
            if self._server.tls == "starttls":
                connection.starttls(context=self._context)
            if self._server.username is not None and self._server.password is not None:
                connection.login(self._server.username, self._server.password.get_secret_value())
        except smtplib.SMTPNotSupportedError as error:
            raise MailUnavailable(
                "The mail server does not offer the encryption or sign-in it is to have."
            ) from error


class _Connection(smtplib.SMTP):
    def __init__(self, server: SmtpServer, context: ssl.SSLContext, name: str, deadline: Deadline) -> None:
        self._tls = context if server.tls == "tls" else None
        self._deadline = deadline
        port = server.port or DEFAULT_PORTS[server.tls]
        super().__init__(server.host, port, local_hostname=name, timeout=ANSWER_SECONDS)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        line = socket.create_connection((host, port), timeout)
        self._deadline.watch(line)
        return line if self._tls is None else self._tls.wrap_socket(line, server_hostname=host)


@contextmanager
def _trouble_named() -> Iterator[None]:
    """Logs the server's reply code; callers learn only the kind of error."""
    try:
        yield
    except (smtplib.SMTPException, OSError, ValueError) as error:
        code = _reply_code(error)
        log.warning("mail not sent", trouble=type(error).__name__, reply=code)
        what = f"answered {code}" if code else f"could not be used ({type(error).__name__})"
        if _is_for_good(error, code):
            raise MailRefused(f"The mail server takes no such mail: {what}.") from error
        raise MailUnavailable(f"The mail server {what}.") from error


def _reply_code(error: Exception) -> int | None:
    """The code (RFC 5321, section 4.2) without its text, which may quote what was sent."""
    if isinstance(error, smtplib.SMTPResponseException):
        return int(error.smtp_code)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return next(int(code) for code, _ in error.recipients.values())
    return None


def _is_for_good(error: Exception, code: int | None) -> bool:
    """Whether the fault is in this mail. After a wrong password or sender the mail waits for the operator."""
    about_the_mail = isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPDataError)
    if about_the_mail:
        return code in FOR_GOOD
    # An address that no header or command can hold, or that the server's SMTP cannot express.
    return isinstance(error, UnicodeError | smtplib.SMTPNotSupportedError) or type(error) is ValueError
