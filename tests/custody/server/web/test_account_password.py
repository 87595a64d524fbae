"""A new password: by mail for who lost the old one, and for who knows it."""

from collections.abc import Callable

import pytest

from tests.support.accounts import (
    CAROL,
    NEW_PASSWORD,
    Session,
    enrol,
    mailed_token,
    measured,
    register,
    request_reset,
    reset,
    sign_in,
    told,
    validate,
)
from tests.support.asgi import asgi_client
from tests.support.platform import PASSWORD, World


@pytest.fixture
def carol(world: World) -> str:
    return register(world)


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
            weak = reset(world, token, CAROL)
            assert (weak.status_code, weak.json()["errors"][0]["pointer"]) == (422, "/new_password")
            assert reset(world, token).status_code == 200
        elif why == "replaced":
            request_reset(world)
            newer = mailed_token(world)
            assert reset(world, token).status_code == 422
            assert reset(world, newer).status_code == 200
        else:
            body = {"password": PASSWORD, "new_password": NEW_PASSWORD}
            assert session.user.post("/auth/change-password", body).status_code == 200
        again = reset(world, token, "a third battery")
        assert (again.status_code, again.json()["errors"][0]["pointer"]) == (422, "/token")
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

    def test_a_reset_is_asked_for_alike(self, world: World, carol: str) -> None:
        with measured(world) as known:
            hers = request_reset(world)
        with measured(world) as unknown:
            nobodys = request_reset(world, "nobody@example.org")
        assert told(hers) == told(nobodys)
        assert known == unknown
        assert known.commits > 0
        assert known.hashes == 0
        world.deliver_mail()
        assert [mail.to for mail in world.mail.sent] == [carol]

    def test_a_login_fails_alike(self, world: World, carol: str) -> None:
        """A hash is computed for an account that is not there, too."""
        with measured(world) as known:
            hers = world.login(carol, "not her password")
        with measured(world) as unknown:
            nobodys = world.login("nobody@example.org", "not her password")
        assert told(hers) == told(nobodys)
        assert hers.status_code == 401
        assert known == unknown
        assert known.hashes == 1
        passwords = world.platform.services.tools.passwords
        assert not passwords.is_outdated(passwords._no_account), "of the same parameters"
        assert world.audit_actions()[-2:] == ["SIGN_IN_REFUSED"] * 2

    def test_a_registration_is_answered_alike(self, world: World, carol: str) -> None:
        """A new account is rows more, in the commits that either makes: the counted try, and what came of
        it.
        """
        body = {"email": carol, "password": NEW_PASSWORD}
        with measured(world) as known:
            hers = world.http.post("/auth/register", json=body)
        with measured(world) as unknown:
            nobodys = world.http.post("/auth/register", json={**body, "email": "dan@example.org"})
        assert told(hers) == told(nobodys)
        assert (known.hashes, known.commits) == (unknown.hashes, unknown.commits) == (1, 2)
        # Both leave a row: a commit that changes nothing is told from one that reaches the disk by its time.
        assert world.audit_actions()[-2:] == ["REGISTRATION_REPEATED", "ACCOUNT_REGISTERED"]
        world.deliver_mail()
        subjects = [mail.subject for mail in world.mail.sent]
        assert subjects == ["You already have an account", "Your custody account"]
        assert world.login(carol).status_code == 200, "nothing is changed"


class TestChange:
    def change(self, session):
        body = {"password": PASSWORD, "new_password": NEW_PASSWORD}
        return session.user.post("/auth/change-password", body)

    def test_ends_every_other_session(self, world: World, carol: str) -> None:
        mine, other = sign_in(world), sign_in(world)
        assert self.change(mine).json() == {"success": True}
        assert mine.is_alive
        assert mine.refresh().status_code == 200
        assert not other.is_alive
        assert world.login(carol).status_code == 401
        assert world.login(carol, NEW_PASSWORD).status_code == 200
        assert "PASSWORD_CHANGED" in world.audit_actions()
        world.deliver_mail()
        assert "Your password was changed" in [mail.subject for mail in world.mail.sent]

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("change-password", {"new_password": NEW_PASSWORD}),
            ("two-factor", {"method": "none"}),
            ("totp/enrol", {}),
        ],
    )
    def test_needs_the_old_password(self, world: World, carol: str, path: str, body: dict) -> None:
        """A session left open is not enough; guesses are bounded, and keep nobody from signing in (P38)."""
        user = sign_in(world).user
        for _ in range(10):
            refused = user.post(f"/auth/{path}", {"password": "a guess", **body})
            assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/password")
        assert user.post(f"/auth/{path}", {"password": PASSWORD, **body}).status_code == 429
        assert world.login(carol).json()["two_factor_method"] == "email"

    def test_a_login_under_way_with_the_old_one_does_not_end_well(self, world: World, carol: str) -> None:
        """Between a right password's check and its session, the password is changed."""
        session, passwords = sign_in(world), world.platform.services.tools.passwords
        is_outdated = passwords.is_outdated

        def change_meanwhile(stored: str) -> bool:
            passwords.is_outdated = is_outdated
            assert self.change(session).status_code == 200
            return is_outdated(stored)

        passwords.is_outdated = change_meanwhile
        assert world.login(carol).status_code == 401


class TestThrownOutMeanwhile:
    """A thief who knows the password, and whose call is under way while the owner ends it all: the owner
    wins.
    """

    @pytest.fixture
    def thief(self, world: World, carol: str) -> Session:
        return sign_in(world)

    def after_the_check(self, world: World, monkeypatch, act: Callable[[], object]) -> None:
        """``act`` happens after the password was found right, and before anything is changed."""
        passwords = world.platform.services.tools.passwords
        matches = passwords.matches

        def slow(stored: str | None, password: str) -> bool:
            monkeypatch.undo()
            found = matches(stored, password)
            act()
            return found

        monkeypatch.setattr(passwords, "matches", slow)

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("change-password", {"password": PASSWORD, "new_password": "the thief's own choice"}),
            ("two-factor", {"password": PASSWORD, "method": "none"}),
            ("totp/enrol", {"password": PASSWORD}),
        ],
    )
    @pytest.mark.parametrize("how", ["reset", "revoked"])
    def test_changes_nothing(
        self, world: World, thief: Session, monkeypatch, path: str, body: dict, how: str
    ) -> None:
        owner = sign_in(world)
        request_reset(world)
        token = mailed_token(world)
        acts = {
            "reset": lambda: reset(world, token),
            "revoked": lambda: owner.user.post("/auth/sessions/revoke", {"all_others": True}),
        }
        self.after_the_check(world, monkeypatch, acts[how])
        assert thief.user.post(f"/auth/{path}", body).status_code == 401
        password = NEW_PASSWORD if how == "reset" else PASSWORD
        assert world.login(CAROL, password).json()["two_factor_method"] == "email"
