"""A mail server in the test's own process, on a free port of loopback, with or without TLS and sign-in."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session


@dataclass
class Postbox:
    """The mails that arrived. ``refusals``: other answers, by command (MAIL, RCPT, DATA)."""

    port: int = 0
    arrived: list[EmailMessage] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802
        if "MAIL" in self.refusals:
            return self.refusals["MAIL"]
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        if "RCPT" in self.refusals:
            return self.refusals["RCPT"]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        if "DATA" in self.refusals:
            return self.refusals["DATA"]
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.arrived.append(message)
        self.envelopes.append(envelope)
        self.sessions.append(session)
        return "250 OK"

    async def handle_QUIT(self, server, session, envelope):  # noqa: N802
        return self.refusals.get("QUIT", "221 Bye")


@contextmanager
def mail_server(
    *, tls: str = "none", context: ssl.SSLContext | None = None, password: str | None = None
) -> Iterator[Postbox]:
    """``password``: required with the user name ``custody``."""
    box = Postbox()

    def authenticate(server, session, envelope, mechanism, data) -> AuthResult:
        is_right = (data.login, data.password) == (b"custody", (password or "").encode())
        return AuthResult(success=is_right, handled=False)

    def protocol() -> SMTP:
        return SMTP(
            box,
            hostname="mail.example.org",
            loop=loop,
            enable_SMTPUTF8=False,
            tls_context=context if tls == "starttls" else None,
            require_starttls=tls == "starttls",
            authenticator=authenticate if password else None,
            # The library does not see implicit TLS, and would not offer authentication, or warn.
            auth_required=password is not None and tls == "starttls",
            auth_require_tls=tls != "tls",
        )

    loop = asyncio.new_event_loop()
    wrapped = context if tls == "tls" else None
    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", 0, ssl=wrapped))
    box.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, name="mail server")
    thread.start()
    try:
        yield box
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
