"""Sign-in through HTTP: password and mailed code; a mail server that fails, and a real one."""

import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from argon2 import PasswordHasher
from sqlalchemy import select

from custody.schemas.auth import REFRESH_COOKIE
from custody.schemas.calls import CALLS
from custody.server.app import open_platform
from custody.server.errors import MailRefused, MailUnavailable
from custody.server.opening import PlatformDependencies
from custody.server.settings import Settings
from custody.server.store.models import CredentialRow, OtpChallengeRow
from tests.custody.spec.samples import sample
from tests.support.accounts import another, register, sign_in, validate
from tests.support.asgi import asgi_client
from tests.support.certificates import certificate_for_address
from tests.support.custody import refused
from tests.support.platform import CHEAP, PASSWORD, As, Clock, World
from tests.support.smtp import mail_server

ALICE, USER = "alice@example.org", "/api/v1/get-user-info"


class TestLogin:
    def test_an_address_is_read_in_any_case_and_the_refresh_cookie_is_kept_from_pages(
        self, world: World, alice: As
    ) -> None:
        answer = world.login(" Alice@Example.ORG ")
        body, cookie = answer.json(), answer.headers["set-cookie"]
        assert (body["requires_2FA"], body["token_2fa"], body["expires_in"]) == (False, "", 900)
        assert body["user_info"]["UUID"] == 1
        assert body["user_info"]["LastLogin"] == {"Time": "2026-03-01T12:00:00.000Z", "Valid": True}
        assert "refresh_token" not in body
        assert answer.cookies[REFRESH_COOKIE] not in answer.text
        for part in ("HttpOnly", "SameSite=strict", "Path=/auth", "Max-Age=2592000"):
            assert part in cookie
        assert "Secure" not in cookie, "on loopback, over HTTP"

    def test_the_refresh_cookie_is_secure_but_on_loopback_http(
        self, world: World, alice: As, monkeypatch
    ) -> None:
        """A proxy may ask by this machine's own address, and name no scheme."""

        def sign_in(url: str) -> httpx.Response:
            return world.http.post(f"{url}/auth/login", json={"email": ALICE, "password": PASSWORD})

        for url in ("https://custody.example.org", "http://custody.example.org", "https://127.0.0.1"):
            assert "Secure" in sign_in(url).headers["set-cookie"], url
        monkeypatch.setattr(world.platform.asgi.state, "behind_proxy", True)
        answer = sign_in("http://127.0.0.1")
        assert "Secure" in answer.headers["set-cookie"]
        own = {"Authorization": f"Bearer {answer.json()['token']}"}
        leave = world.http.post("http://127.0.0.1/auth/logout", headers=own)
        assert "Secure" in leave.headers["set-cookie"]

    def test_guessing_one_account_is_slowed_and_signing_in_often_is_no_guessing(
        self, world: World, alice: As
    ) -> None:
        assert {world.login(ALICE).status_code for _ in range(25)} == {200}
        for _ in range(10):
            assert world.login(ALICE, "a guess").status_code == 401
        blocked = world.login(ALICE)
        refused(blocked, 429, "RATE_LIMITED")
        assert 0 < int(blocked.headers["Retry-After"]) <= 900
        world.clock.advance(minutes=15)
        assert world.login(ALICE).status_code == 200

    def test_one_address_makes_so_many_calls_about_signing_in(self, world: World, alice: As) -> None:
        for _ in range(119):
            world.login("nobody@example.org", "a guess")
        known = {"email": ALICE, "password": PASSWORD, "new_password": "another battery", "token": "x" * 43}
        known |= {"token_2fa": "x" * 43, "sid": "x" * 43, "otp": "123456", "code": "123456", "enabled": True}
        for call in (row for row in CALLS if row.by_address):
            refused(alice.post(call.path, sample(call, known)), 429, "RATE_LIMITED")

    def test_an_outdated_hash_is_renewed(self, world: World, alice: As) -> None:
        old = PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
        with world.platform.services.store.write() as db:
            db.get_one(CredentialRow, 1).password_hash = old
        assert world.login(ALICE).status_code == 200
        with world.platform.services.store.read() as db:
            renewed = db.scalars(select(CredentialRow.password_hash)).one()
        assert "t=1" in renewed
        assert world.login(ALICE).status_code == 200


class TestRegister:
    def test_does_not_fill_a_mailbox(self, world: World) -> None:
        """Each registration is a mail, from whichever address it is asked for; account or none, alike
        (P39).
        """
        body = {"email": "nobody@example.org", "password": PASSWORD}
        answers = []
        for number in range(20):
            with asgi_client(world.platform.asgi, address=f"192.0.2.{number + 1}") as http:
                answers.append(http.post("/auth/register", json=body))
            world.deliver_mail()
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 15
        assert "Retry-After" in answers[-1].headers
        assert len(world.mail.sent) == 5
        world.clock.advance(hours=1)
        assert world.http.post("/auth/register", json=body).status_code == 200

    def test_refuses_what_is_guessed_first(self, world: World) -> None:
        own = ("ErinDoe1@example.org", "erindoe1erindoe1")
        for password in (*own, "aaaaaaaaaaaa", "eleven 11", "Password1234", "Bitcoin-Custody-12"):
            body = {"email": "erindoe1@example.org", "password": password}
            answer = world.http.post("/auth/register", json=body)
            assert refused(answer, 422, "VALIDATION")["errors"][0]["pointer"] == "/password"
            assert password not in answer.text.replace("example.org", "")

    def test_the_same_key_strokes_on_another_keyboard_sign_in(self, world: World) -> None:
        body = {"email": "finn@example.org", "password": "A\u030angstro\u0308m 12"}
        world.http.post("/auth/register", json=body)
        assert world.login("finn@example.org", "\u00c5ngstr\u00f6m 12").status_code == 200


class TestOneTimeCode:
    def start(self, world: World, email: str) -> str:
        answer = world.login(email)
        body = answer.json()
        assert body["success"] is True
        assert body["requires_2FA"] is True
        assert body["token"] == body["sid"] == ""
        assert "set-cookie" not in answer.headers
        return body["token_2fa"]

    def test_is_good_once_and_for_five_minutes(self, world: World, carol: str) -> None:
        """P38: reuse. Another shape is no try; who is new has no workspace."""
        token, code = self.start(world, carol), world.mail.newest_code()
        for shape in ("12345", "1234567", "abcdef", "１２３４５６", "", "a23456"):
            assert validate(world, token, shape).status_code == 422
        done = validate(world, token, code)
        assert REFRESH_COOKIE in done.cookies
        assert done.json()["user_info"]["OrganisationsInfo"] == {"Organisations": []}
        signed_in = As(world.http, {"Authorization": f"Bearer {done.json()['token']}"})
        assert signed_in.get(USER).status_code == 200
        again = validate(world, token, code)
        token, code = self.start(world, carol), world.mail.newest_code()
        world.clock.advance(minutes=5)
        for over, why in ((again, "it was used"), (validate(world, token, code), "its time has passed")):
            problem = refused(over, 401, "OTP_INVALID")
            assert problem["detail"].startswith(f"This sign-in is over: {why}")

    def test_locks_after_five_tries(self, world: World, carol: str) -> None:
        """P38: brute force; the right code comes too late. The last try says so, and each after it."""
        token, code = self.start(world, carol), world.mail.newest_code()
        answers = [validate(world, token, tried) for tried in [another(code)] * 5 + [code]]
        assert {answer.status_code for answer in answers} == {401}
        is_over = [answer.json()["detail"].startswith("This sign-in is over: too many") for answer in answers]
        assert is_over == [False] * 4 + [True] * 2

    def test_parallel_tries_are_all_counted(self, world: World, carol: str) -> None:
        """P38: eight at once are not eight firsts."""
        token, code = self.start(world, carol), world.mail.newest_code()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: validate(world, token, another(code)), range(8)))
        assert validate(world, token, code).status_code == 401

    def test_is_bound_to_its_own_token(self, world: World, carol: str) -> None:
        """P38: a code with another sign-in's token_2fa."""
        first, first_code = self.start(world, carol), world.mail.newest_code()
        second_code = first_code
        while second_code == first_code:  # once in a million
            second, second_code = self.start(world, carol), world.mail.newest_code()
        assert validate(world, second, first_code).status_code == 401
        assert validate(world, first, second_code).status_code == 401
        assert validate(world, second, second_code).status_code == 200

    def test_challenges_gathered_beforehand_do_not_buy_tries(self, world: World, carol: str) -> None:
        """P38: the twenty tries count across challenges that were all open before the first try."""
        challenges = [(self.start(world, carol), world.mail.newest_code()) for _ in range(6)]
        for token, code in challenges[:4]:
            for _ in range(5):
                assert validate(world, token, another(code)).status_code == 401
        late = validate(world, *challenges[4])
        assert (late.status_code, "Retry-After" in late.headers) == (429, True)
        assert world.login(carol).status_code == 429, "nor does a new one"
        world.clock.advance(hours=1)
        assert world.login(carol).status_code == 200


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
