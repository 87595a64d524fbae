"""A mail server that fails, met by people who sign in; and a whole journey whose secrets stay where they
belong.
"""

import io
import json
from pathlib import Path

import httpx
import pytest
import structlog
from sqlalchemy import select

from custody.server.errors import MailRefused, MailUnavailable
from custody.server.store.models import AuditEventRow, OtpChallengeRow
from tests.support.accounts import (
    NEW_PASSWORD,
    enrol,
    mailed_token,
    register,
    request_reset,
    reset,
    sign_in,
    validate,
)
from tests.support.asgi import asgi_client
from tests.support.databases import everything_stored
from tests.support.platform import PASSWORD, World


@pytest.fixture
def carol(world: World) -> str:
    return register(world)


class TestMailServerDown:
    @pytest.fixture
    def down(self, world: World, monkeypatch):
        def fail(_mail) -> None:
            raise failures[0]

        failures: list[Exception] = [MailUnavailable("The mail server answered 451.")]
        monkeypatch.setattr(world.mail, "send", fail)
        return failures

    def test_a_code_that_cannot_be_mailed_is_said(self, world: World, carol: str, down: list) -> None:
        for error in (MailUnavailable("It is away."), MailRefused("It refused.")):
            down[0] = error
            answer = world.login(carol)
            assert (answer.status_code, answer.json()["code"]) == (503, "BACKEND_UNAVAILABLE")
            assert "mail" in answer.json()["detail"]
            assert "Retry-After" in answer.headers
            assert "token_2fa" not in answer.json()

    def test_it_counts_as_no_try(self, world: World, carol: str, down: list, monkeypatch) -> None:
        """A wrong password is answered as ever: what the server does tells nothing about accounts (P39)."""
        assert world.login(carol, "not hers").status_code == 401
        for _ in range(25):
            assert world.login(carol).status_code == 503
        with world.platform.services.store.read() as db:
            assert db.scalars(select(OtpChallengeRow)).all() == []
        monkeypatch.undo()
        assert sign_in(world).is_alive


class Spy:
    """Every secret that passes through HTTP, gathered from what is sent and answered."""

    NAMES = frozenset(
        {"password", "new_password", "token", "token_2fa", "otp", "code", "secret", "otpauth_uri"}
    )

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def gather(self, body: dict) -> None:
        self.seen |= {value for name, value in body.items() if name in self.NAMES and isinstance(value, str)}
        self.seen |= set(body.get("recovery_codes", ()))

    def on_request(self, request: httpx.Request) -> None:
        if request.content:
            self.gather(json.loads(request.content))

    def on_response(self, response: httpx.Response) -> None:
        response.read()
        body = response.json()
        if isinstance(body, dict):
            self.gather(body)
        self.seen |= set(response.cookies.values())


def test_no_secret_of_a_journey_is_logged_recorded_or_shown(world: World, carol: str) -> None:
    """P49: passwords, codes, tokens, an authenticator's secret: in no log line, audit row, repr or waiting
    job.
    """
    spy, lines = Spy(), io.StringIO()
    world.http.event_hooks = {"request": [spy.on_request], "response": [spy.on_response]}
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(lines),
        cache_logger_on_first_use=False,
    )
    try:
        session = sign_in(world, device="desk")
        phone = enrol(session)
        validate(world, world.login(carol).json()["token_2fa"], "111111")
        sign_in(world, code=phone.next_code())
        sign_in(world, code=phone.recovery_codes[0])
        session.refresh()
        session.user.post("/auth/change-password", {"password": "a wrong one", "new_password": NEW_PASSWORD})
        session.user.post("/auth/change-password", {"password": PASSWORD, "new_password": NEW_PASSWORD})
        request_reset(world)
        reset(world, mailed_token(world), "a third battery staple")
        session.user.post("/auth/totp/enrol", {"password": [PASSWORD]})
        world.http.post("/auth/reset-password", json={"token": "t" * 43, "new_password": "short"})
    finally:
        structlog.reset_defaults()
    logged = lines.getvalue()
    # Six digits stand in times and ids too; what is longer is nowhere by chance.
    secrets = {text for secret in spy.seen if len(secret) > 6 for text in (secret, secret.replace("-", ""))}
    assert len(secrets) > 25
    assert "/auth/reset-password" in logged
    with world.platform.services.store.read() as db:
        recorded = "\n".join(str(vars(event)) for event in db.scalars(select(AuditEventRow)))
    places = {
        "log": logged,
        "audit log": recorded,
        "database": everything_stored(world.platform.services.store),
        "repr": "\n".join(repr(mail) for mail in world.mail.sent) + repr(world.platform.services),
    }
    assert {place for place, text in places.items() for secret in secrets if secret in text} == set()
    assert phone.secret in secrets


def test_a_password_of_the_mail_server_is_in_no_repr(tmp_path: Path) -> None:
    """P49."""
    from pydantic import SecretStr

    from custody.server.mail.mailer import SmtpServer
    from custody.server.settings import Settings

    settings = Settings(state=tmp_path, smtp_password="precious")
    assert "precious" not in repr(settings)
    assert "precious" not in repr(
        SmtpServer("mail.example.org", username="u", password=SecretStr("precious"))
    )


def test_signs_in_through_a_real_mail_server(tmp_path: Path) -> None:
    """From the settings to the code in the mailbox, and a reset through the outbox beside it."""
    import re
    import secrets

    from custody.server.app import PlatformDependencies, open_platform
    from custody.server.settings import Settings
    from tests.support.certificates import certificate_for_address
    from tests.support.platform import CHEAP, Clock
    from tests.support.smtp import mail_server

    authority, context = certificate_for_address(tmp_path)
    with mail_server(tls="starttls", context=context, password="relay password") as box:
        settings = Settings(
            state=tmp_path / "state",
            smtp_host="127.0.0.1",
            smtp_port=box.port,
            smtp_username="custody",
            smtp_password="relay password",
            smtp_ca_file=authority,
            mail_from="custody@example.org",
            public_url="https://custody.example.org/",
        )
        platform = open_platform(
            settings, PlatformDependencies(clock=Clock(), random=secrets.token_bytes, hasher=CHEAP)
        )
        try:
            with asgi_client(platform.asgi) as http:
                account = {"email": "carol@example.org", "password": PASSWORD}
                assert http.post("/auth/register", json=account).status_code == 200
                waiting = http.post("/auth/login", json=account).json()
                (code,) = re.findall(r"\b[0-9]{6}\b", box.arrived[-1].get_content())
                body = {"token_2fa": waiting["token_2fa"], "otp": code}
                assert http.post("/auth/otp-validate", json=body).status_code == 200
                http.post("/auth/request-password-reset", json={"email": "carol@example.org"})
                platform.background.outbox("mail").run_due()
        finally:
            platform.close()
    assert [mail["Subject"] for mail in box.arrived] == [
        "Your sign-in code", "Your custody account", "Choose a new password"
    ]  # fmt: skip
    assert "https://custody.example.org/reset-password#token=" in box.arrived[-1].get_content()
