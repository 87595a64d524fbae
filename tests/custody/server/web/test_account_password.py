"""A new password: by mail for who lost the old one, and for who knows it."""

import httpx
import pytest

from tests.support.accounts import (
    CAROL,
    NEW_PASSWORD,
    Session,
    Work,
    enrol,
    mailed_token,
    measured,
    request_reset,
    reset,
    sign_in,
    told,
    validate,
)
from tests.support.asgi import asgi_client
from tests.support.custody import ok, refused
from tests.support.platform import PASSWORD, World

# What a session alone does not do, beside the password.
NEEDS_PASSWORD = {"change-password": {"new_password": "the thief's own choice"}}
NEEDS_PASSWORD |= {"two-factor": {"method": "none"}, "totp/enrol": {}}


def change(session: Session) -> httpx.Response:
    body = {"password": PASSWORD, "new_password": NEW_PASSWORD}
    return session.user.post("/auth/change-password", body)


def guess(world: World, email: str, addresses: range) -> list[int]:
    """Eleven wrong passwords from each of these addresses: the last answer to each."""
    last = []
    for number in addresses:
        with asgi_client(world.platform.asgi, address=f"198.51.100.{number}") as http:
            body = {"email": email, "password": "a guess"}
            last.append([http.post("/auth/login", json=body).status_code for _ in range(11)][-1])
    return last


class TestGuesses:
    def test_p60_wrong_passwords_from_elsewhere_do_not_keep_the_owner_out(self, world: World) -> None:
        """After a hundred from anywhere a code is asked for, of an account without a second factor too: by
        mail, as long as it lasts.
        """
        world.organisation("Acme", "ada@example.org")
        assert guess(world, "ada@example.org", range(9)) == [429] * 9
        assert world.login("ada@example.org").json()["requires_2FA"] is False
        assert guess(world, "ada@example.org", range(9, 20)) == [429] * 11
        for _ in range(2):
            asked = world.login("ada@example.org").json()
            assert (asked["requires_2FA"], asked["two_factor_method"], asked["token"]) == (True, "email", "")
        assert validate(world, asked["token_2fa"], world.mail.newest_code()).json()["token"]
        world.clock.advance(minutes=15)
        assert world.login("ada@example.org").json()["requires_2FA"] is False

    def test_p60_an_authenticator_stays_the_way_in(self, world: World, carol: str) -> None:
        phone = enrol(sign_in(world))
        guess(world, carol, range(11))
        asked = world.login(carol).json()
        assert asked["two_factor_method"] == "totp"
        assert validate(world, asked["token_2fa"], phone.next_code()).json()["token"]


class TestReset:
    def test_the_mailed_token_sets_a_new_password_and_the_second_factor_stays(
        self, world: World, carol: str
    ) -> None:
        """Who reads the mailbox alone gets no further than a password. P38: what waits for a code ends; the
        password that opened it is not the account's any more.
        """
        session = sign_in(world)
        phone = enrol(session)
        waiting = world.login(carol).json()["token_2fa"]
        assert request_reset(world, " Carol@Example.org ").json() == {"success": True}
        assert reset(world, mailed_token(world)).json() == {"success": True}
        assert validate(world, waiting, phone.next_code()).status_code == 401
        assert world.login(carol).status_code == 401
        assert (session.is_alive, session.refresh().status_code) == (False, 401)
        assert {"PASSWORD_RESET_REQUESTED", "PASSWORD_RESET"} <= set(world.audit_actions())
        world.deliver_mail()
        assert world.mail.sent[-1].subject == "Your password was changed"
        anew = world.login(carol, NEW_PASSWORD).json()
        assert (anew["requires_2FA"], anew["two_factor_method"]) == (True, "totp")
        assert validate(world, anew["token_2fa"], phone.next_code()).status_code == 200

    @pytest.mark.parametrize("why", ["used", "replaced", "changed"])
    def test_a_token_is_good_once_and_until_the_password_or_the_token_is_another(
        self, world: World, carol: str, why: str
    ) -> None:
        session = sign_in(world)
        request_reset(world)
        token = mailed_token(world)
        if why == "used":
            weak = refused(reset(world, token, CAROL), 422, "VALIDATION")
            assert weak["errors"][0]["pointer"] == "/new_password"
            ok(reset(world, token))
        elif why == "replaced":
            request_reset(world)
            newer = mailed_token(world)
            refused(reset(world, token), 422, "VALIDATION")
            ok(reset(world, newer))
        else:
            ok(change(session))
        again = refused(reset(world, token, "a third battery"), 422, "VALIDATION")
        assert again["errors"][0]["pointer"] == "/token"
        assert world.login(carol, NEW_PASSWORD).status_code == 200

    def test_is_good_for_an_hour_from_the_mail_on(self, world: World, carol: str) -> None:
        request_reset(world)
        world.clock.advance(hours=3)
        first = mailed_token(world)
        world.clock.advance(hours=1)
        assert reset(world, first).status_code == 422
        assert world.login(carol).status_code == 200
        request_reset(world)
        second = mailed_token(world)
        world.clock.advance(minutes=59)
        assert reset(world, second).status_code == 200

    def test_a_stranger_who_used_up_the_resets_has_mailed_the_owner_a_way_in(
        self, world: World, carol: str
    ) -> None:
        for _ in range(10):
            world.login(carol, "a guess")
        for _ in range(5):
            request_reset(world)
            world.deliver_mail()
        assert request_reset(world).status_code == 429
        assert reset(world, mailed_token(world)).status_code == 200
        assert world.login(carol, NEW_PASSWORD).status_code == 200

    def test_an_unknown_token_is_refused_before_any_hash(self, world: World) -> None:
        with measured(world) as work:
            for token in ("x" * 43, "0" * 16):
                assert reset(world, token).status_code == 422
        assert work.hashes == 0


class TestUniform:
    """P39: a caller cannot tell whether an account exists. Work is counted, not timed."""

    def asked(self, world: World, status: int, path: str, **body: str) -> list[Work]:
        """The work of an account that is there, and of one that is not."""
        answers, works = [], []
        for email in (CAROL, "nobody@example.org"):
            with measured(world) as work:
                answers.append(world.http.post(f"/auth/{path}", json={"email": email, **body}))
            works.append(work)
        hers, nobodys = map(told, answers)
        assert (hers, hers[0]) == (nobodys, status)
        return works

    def test_a_reset_is_asked_for_alike(self, world: World, carol: str) -> None:
        known, unknown = self.asked(world, 200, "request-password-reset")
        assert known == unknown
        assert known.commits > 0
        assert known.hashes == 0
        world.deliver_mail()
        assert [mail.to for mail in world.mail.sent] == [carol]

    def test_a_login_fails_alike(self, world: World, carol: str) -> None:
        """A hash is computed for an account that is not there, too."""
        known, unknown = self.asked(world, 401, "login", password="not her password")
        assert known == unknown
        assert known.hashes == 1
        passwords = world.platform.services.tools.passwords
        assert not passwords.is_outdated(passwords._no_account), "of the same parameters"
        assert world.audit_actions()[-2:] == ["SIGN_IN_REFUSED"] * 2

    def test_a_registration_is_answered_alike(self, world: World, carol: str) -> None:
        """A new account is rows more, in the commits that either makes: the counted try, and what came of
        it.
        """
        known, unknown = self.asked(world, 200, "register", password=NEW_PASSWORD)
        assert (known.hashes, known.commits) == (unknown.hashes, unknown.commits) == (1, 2)
        # Both leave a row: a commit that changes nothing is told from one that reaches the disk by its time.
        assert world.audit_actions()[-2:] == ["REGISTRATION_REPEATED", "ACCOUNT_REGISTERED"]
        world.deliver_mail()
        subjects = [mail.subject for mail in world.mail.sent]
        assert subjects == ["You already have an account", "Your custody account"]
        assert world.login(carol).status_code == 200, "nothing is changed"


class TestChange:
    def test_ends_every_other_session(self, world: World, carol: str) -> None:
        mine, other = sign_in(world), sign_in(world)
        assert change(mine).json() == {"success": True}
        assert mine.is_alive
        assert mine.refresh().status_code == 200
        assert not other.is_alive
        assert world.login(carol).status_code == 401
        assert world.login(carol, NEW_PASSWORD).status_code == 200
        assert "PASSWORD_CHANGED" in world.audit_actions()
        world.deliver_mail()
        assert "Your password was changed" in [mail.subject for mail in world.mail.sent]

    @pytest.mark.parametrize("path", NEEDS_PASSWORD)
    def test_needs_the_old_password(self, world: World, carol: str, path: str) -> None:
        """A session left open is not enough; guesses are bounded, and keep nobody from signing in (P38)."""
        user, body = sign_in(world).user, NEEDS_PASSWORD[path]
        for _ in range(10):
            problem = refused(user.post(f"/auth/{path}", {"password": "a guess", **body}), 422, "VALIDATION")
            assert problem["errors"][0]["pointer"] == "/password"
        refused(user.post(f"/auth/{path}", {"password": PASSWORD, **body}), 429, "RATE_LIMITED")
        assert world.login(carol).json()["two_factor_method"] == "email"

    def test_a_login_under_way_with_the_old_one_does_not_end_well(self, world: World, carol: str) -> None:
        """Between a right password's check and its session, the password is changed."""
        session, passwords = sign_in(world), world.platform.services.tools.passwords
        is_outdated = passwords.is_outdated

        def change_meanwhile(stored: str) -> bool:
            passwords.is_outdated = is_outdated
            ok(change(session))
            return is_outdated(stored)

        passwords.is_outdated = change_meanwhile
        assert world.login(carol).status_code == 401


@pytest.mark.parametrize("path", NEEDS_PASSWORD)
@pytest.mark.parametrize("how", ["reset", "revoked"])
def test_a_thief_whose_call_is_under_way_while_the_owner_ends_it_all_changes_nothing(
    world: World, carol: str, monkeypatch, path: str, how: str
) -> None:
    """The password, which they know, was found right; nothing is changed yet."""
    thief, owner = sign_in(world), sign_in(world)
    request_reset(world)
    token, passwords = mailed_token(world), world.platform.services.tools.passwords
    matches = passwords.matches

    def slow(stored: str | None, password: str) -> bool:
        monkeypatch.undo()
        found = matches(stored, password)
        revoked = {"all_others": True}
        ok(reset(world, token) if how == "reset" else owner.user.post("/auth/sessions/revoke", revoked))
        return found

    monkeypatch.setattr(passwords, "matches", slow)
    assert thief.user.post(f"/auth/{path}", {"password": PASSWORD, **NEEDS_PASSWORD[path]}).status_code == 401
    password = NEW_PASSWORD if how == "reset" else PASSWORD
    assert world.login(carol, password).json()["two_factor_method"] == "email"
