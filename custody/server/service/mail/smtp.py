"""Mail through the operator's mail server: encrypted, its certificate verified, and over by a deadline."""

import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal

import structlog
from pydantic import SecretStr

from custody.deadlines import Deadline
from custody.server.domain.errors import MailRefused, MailUnavailable
from custody.server.service.mail.mailer import CannotMail, Letterhead, Mail, address_of

log = structlog.get_logger()

# RFC 6409: submission with STARTTLS; RFC 8314: submission over TLS from the start.
DEFAULT_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
# For each answer, and for all of one mail: a sign-in waits for its code, and the SDK for twenty seconds.
ANSWER_SECONDS: Final = 5.0
MAIL_SECONDS: Final = 15.0
# RFC 5321, section 4.2.1: 5xx is for good, 4xx may pass.
FOR_GOOD: Final = range(500, 600)


@dataclass(frozen=True)
class SmtpServer:
    """``ca_file``: a private authority to trust instead of the usual ones. Raises CannotMail."""

    host: str
    tls: Literal["starttls", "tls", "none"] = "starttls"
    port: int | None = None
    username: str | None = None
    password: SecretStr | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        if self.tls == "none" and not _is_loopback(self.host):
            raise CannotMail(
                f"Mail to {self.host} would travel unencrypted, sign-in codes and all.",
                "Set CUSTODY_SMTP_TLS to starttls or tls; none is for a mail server on this machine.",
            )
        if (self.username is None) != (self.password is None):
            raise CannotMail(
                "A mail server's user name and password go together.",
                "Set both CUSTODY_SMTP_USERNAME and CUSTODY_SMTP_PASSWORD, or neither.",
            )


class SmtpMailer:
    """A connection for each mail: they are few, and none is kept open for a server to close."""

    def __init__(self, server: SmtpServer, letterhead: Letterhead) -> None:
        self._server = server
        self._letterhead = letterhead
        self._context = ssl.create_default_context(cafile=server.ca_file)

    def send(self, mail: Mail) -> None:
        with _trouble_named():
            message = self._letterhead.message(mail)
            sender, to = self._letterhead.sender.addr_spec, address_of(mail.to).addr_spec
            with self._connection() as connection:
                connection.send_message(message, sender, [to])

    @contextmanager
    def _connection(self) -> Iterator[smtplib.SMTP]:
        # Our name is given: smtplib would look it up, and tell it.
        with Deadline(MAIL_SECONDS) as deadline:
            connection = _Connection(self._server, self._context, self._letterhead.sender.domain, deadline)
            try:
                self._prove_both(connection)
                yield connection
                # What was taken was taken, however the server says goodbye: an error here would send the mail twice.
                with suppress(smtplib.SMTPException, OSError):
                    connection.quit()
            finally:
                connection.close()

    def _prove_both(self, connection: smtplib.SMTP) -> None:
        """The server by its certificate, then we by a password. Nothing goes in the clear where a middleman hides an offer."""
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
    """What the server said goes to the log; callers are told what kind of trouble it is."""
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
    """RFC 5321, section 4.2. The text beside it is not repeated: it may quote what was sent."""
    if isinstance(error, smtplib.SMTPResponseException):
        return int(error.smtp_code)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return next(int(code) for code, _ in error.recipients.values())
    return None


def _is_for_good(error: Exception, code: int | None) -> bool:
    """About this mail, and not about us: a wrong password or sender is for the operator to repair, and mail waits."""
    about_the_mail = isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPDataError)
    if about_the_mail:
        return code in FOR_GOOD
    # An address that no header or command can hold, or that the server's SMTP cannot write.
    return isinstance(error, UnicodeError | smtplib.SMTPNotSupportedError) or type(error) is ValueError


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
