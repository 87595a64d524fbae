"""A mail server that fails, and a real one, met by people who sign in."""

import re
import secrets
from pathlib import Path

from sqlalchemy import select

from custody.server.app import PlatformDependencies, open_platform
from custody.server.errors import MailRefused, MailUnavailable
from custody.server.settings import Settings
from custody.server.store.models import OtpChallengeRow
from tests.support.accounts import register, sign_in
from tests.support.asgi import asgi_client
from tests.support.certificates import certificate_for_address
from tests.support.platform import CHEAP, PASSWORD, Clock, World
from tests.support.smtp import mail_server


def test_a_code_that_cannot_be_mailed_is_said_and_counts_as_no_try(world: World, monkeypatch) -> None:
    """A wrong password is answered as ever: what the server does tells nothing about accounts (P39)."""
    carol, failures = register(world), [MailRefused("It refused."), *[MailUnavailable("It is away.")] * 25]

    def fail(_mail) -> None:
        raise failures.pop()

    monkeypatch.setattr(world.mail, "send", fail)
    assert world.login(carol, "not hers").status_code == 401
    while failures:
        answer = world.login(carol)
        assert (answer.status_code, answer.json()["code"]) == (503, "BACKEND_UNAVAILABLE")
        assert "mail" in answer.json()["detail"]
        assert "Retry-After" in answer.headers
        assert "token_2fa" not in answer.json()
    with world.platform.services.store.read() as db:
        assert db.scalars(select(OtpChallengeRow)).all() == []
    monkeypatch.undo()
    assert sign_in(world).is_alive


def test_signs_in_through_a_real_mail_server(tmp_path: Path) -> None:
    """From the settings to the code in the mailbox, and a reset through the outbox beside it."""
    authority, context = certificate_for_address(tmp_path)
    with mail_server(tls="starttls", context=context, password="relay password") as box:
        account = {"smtp_username": "custody", "smtp_password": "relay password"}
        relay = {"smtp_host": "127.0.0.1", "smtp_port": box.port, "smtp_ca_file": authority, **account}
        own = {"mail_from": "custody@example.org", "public_url": "https://custody.example.org/"}
        outside = PlatformDependencies(clock=Clock(), random=secrets.token_bytes, hasher=CHEAP)
        platform = open_platform(Settings(state=tmp_path / "state", **relay, **own), outside)
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
